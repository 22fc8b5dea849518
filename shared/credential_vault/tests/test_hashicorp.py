"""Faults of the vault and faults of one object are reported differently."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from credential_vault import BrokenSeal, Hashicorp, Refused, Secret, SecretPath, Unavailable
from tip_testing.kv2_server import TOKEN, Kv2Server

SECRET = Secret({"key_id": "PK1", "secret_key": "s3cret"})


@pytest.fixture
def kv2() -> Iterator[Kv2Server]:
    server = Kv2Server()
    yield server
    server.close()


@pytest.fixture
def vault(kv2: Kv2Server) -> Hashicorp:
    return Hashicorp(kv2.address, lambda: TOKEN)


@pytest.fixture
def path() -> SecretPath:
    return SecretPath(uuid4(), uuid4(), uuid4(), 1)


def _each(vault: Hashicorp, path: SecretPath) -> list[type[BaseException]]:
    raised: list[type[BaseException]] = []
    for call in (lambda: vault.put(path, SECRET), lambda: vault.get(path), lambda: vault.destroy(path)):
        with pytest.raises(Exception) as error:
            call()
        assert "s3cret" not in repr(error.value) and error.value.__cause__ is None
        raised.append(type(error.value))
    return raised


def test_a_sealed_vault_is_unavailable(vault: Hashicorp, kv2: Kv2Server, path: SecretPath) -> None:
    kv2.sealed = True

    assert _each(vault, path) == [Unavailable] * 3


def test_a_token_that_is_no_longer_good_is_the_vaults_trouble(
    vault: Hashicorp, kv2: Kv2Server, path: SecretPath
) -> None:
    kv2.revoked = True

    assert _each(vault, path) == [Unavailable] * 3


def test_a_policy_that_forbids_one_object_is_that_objects_trouble(
    vault: Hashicorp, kv2: Kv2Server, path: SecretPath
) -> None:
    kv2.refuse.add(str(path.credential_id))

    assert _each(vault, path) == [Refused] * 3


def test_a_vault_that_is_not_there_is_unavailable(kv2: Kv2Server, path: SecretPath) -> None:
    gone = Kv2Server()
    gone.close()

    assert _each(Hashicorp(gone.address, lambda: TOKEN), path) == [Unavailable] * 3


def test_a_token_file_that_cannot_be_read_is_the_vaults_trouble(
    kv2: Kv2Server, path: SecretPath, tmp_path: Path
) -> None:
    vault = Hashicorp(kv2.address, (tmp_path / "token").read_text)

    assert _each(vault, path) == [Unavailable] * 3


def test_objects_swapped_inside_the_vault_are_refused(vault: Hashicorp, kv2: Kv2Server, path: SecretPath) -> None:
    other = SecretPath(path.organization_id, path.account_id, uuid4(), 1)
    vault.put(path, SECRET)
    vault.put(other, Secret({"key_id": "PK2", "secret_key": "other"}))
    mine, theirs = sorted(kv2.secrets, key=lambda name: str(other.credential_id) in name)
    kv2.secrets[mine], kv2.secrets[theirs] = kv2.secrets[theirs], kv2.secrets[mine]

    with pytest.raises(BrokenSeal):
        vault.get(path)
