"""One suite for every vault: what is put at a path is read there only, and destroyed for ever."""

import os
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from credential_vault import Destroyed, Envelope, Hashicorp, Keyring, Local, Missing, Refused, Secret, SecretPath, Vault
from tip_testing.kv2_server import TOKEN, Kv2Server

SECRET = Secret({"key_id": "PK1", "secret_key": "s3cret"})
OTHER = Secret({"key_id": "PK2", "secret_key": "s3cret"})


class InMemory:
    """Envelopes in a dictionary: the table behind the local vault is tested with the service."""

    def __init__(self) -> None:
        self.kept: dict[SecretPath, Envelope | None] = {}

    def load(self, path: SecretPath) -> Envelope | None:
        if path not in self.kept:
            raise Missing
        return self.kept[path]

    def save(self, path: SecretPath, envelope: Envelope) -> bool:
        return self.kept.setdefault(path, envelope) is envelope

    def destroy(self, path: SecretPath) -> None:
        self.kept[path] = None


@pytest.fixture(scope="module")
def kv2() -> Iterator[Kv2Server]:
    server = Kv2Server()
    yield server
    server.close()


@pytest.fixture(params=["local", "hashicorp on a stand-in", "hashicorp"])
def vault(request: pytest.FixtureRequest, kv2: Kv2Server) -> Vault:
    if request.param == "local":
        return Local(Keyring(os.urandom(32)), InMemory())
    if request.param == "hashicorp on a stand-in":
        return Hashicorp(kv2.address, lambda: TOKEN)
    if "VAULT_ADDR" not in os.environ:
        pytest.skip("no HashiCorp Vault here: set VAULT_ADDR and VAULT_TOKEN to run this suite against one")
    return Hashicorp(os.environ["VAULT_ADDR"], lambda: os.environ["VAULT_TOKEN"])


@pytest.fixture
def path() -> SecretPath:
    return SecretPath(uuid4(), uuid4(), uuid4(), 1)


def test_what_was_put_is_read_again(vault: Vault, path: SecretPath) -> None:
    vault.put(path, SECRET)

    assert vault.get(path).reveal() == {"key_id": "PK1", "secret_key": "s3cret"}


def test_putting_again_changes_nothing(vault: Vault, path: SecretPath) -> None:
    vault.put(path, SECRET)
    vault.put(path, SECRET)

    assert vault.get(path) == SECRET


def test_a_path_is_never_overwritten(vault: Vault, path: SecretPath) -> None:
    vault.put(path, SECRET)

    with pytest.raises(Refused):
        vault.put(path, OTHER)

    assert vault.get(path) == SECRET


def test_versions_live_side_by_side_until_they_are_destroyed(vault: Vault, path: SecretPath) -> None:
    newer = replace(path, version=2)
    vault.put(path, SECRET)
    vault.put(newer, OTHER)
    vault.destroy(path)

    assert vault.get(newer) == OTHER
    with pytest.raises(Destroyed):
        vault.get(path)


def test_nothing_is_missing_and_not_destroyed(vault: Vault, path: SecretPath) -> None:
    with pytest.raises(Missing):
        vault.get(path)


@pytest.mark.parametrize("was_there", [True, False])
def test_a_worker_that_comes_late_finds_a_destroyed_path_closed(
    vault: Vault, path: SecretPath, was_there: bool
) -> None:
    if was_there:
        vault.put(path, SECRET)
    vault.destroy(path)
    vault.destroy(path)

    with pytest.raises(Destroyed):
        vault.put(path, SECRET)
    with pytest.raises(Destroyed):
        vault.get(path)


def test_a_secret_does_not_show_itself(vault: Vault, path: SecretPath) -> None:
    vault.put(path, SECRET)

    assert "s3cret" not in repr(vault.get(path)) + str(vault.get(path)) + f"{vault.get(path)!r}"
