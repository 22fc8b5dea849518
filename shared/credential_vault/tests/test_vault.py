"""One suite for every vault: what is put in a place is read there and nowhere else, and destroyed for ever."""

import os
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from credential_vault import Destroyed, Envelope, Hashicorp, Keyring, Local, Missing, Place, Refused, Secret, Vault
from tip_testing.kv2_server import TOKEN, Kv2Server

SECRET = Secret({"key_id": "PK1", "secret_key": "s3cret"})
OTHER = Secret({"key_id": "PK2", "secret_key": "s3cret"})


class InMemory:
    """Envelopes in a dictionary: the table behind the local vault is tested with the service."""

    def __init__(self) -> None:
        self.kept: dict[Place, Envelope | None] = {}

    def load(self, place: Place) -> Envelope | None:
        if place not in self.kept:
            raise Missing
        return self.kept[place]

    def save(self, place: Place, envelope: Envelope) -> bool:
        return self.kept.setdefault(place, envelope) is envelope

    def destroy(self, place: Place) -> None:
        self.kept[place] = None


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
def place() -> Place:
    return Place(uuid4(), uuid4(), uuid4(), 1)


def test_what_was_put_is_read_again(vault: Vault, place: Place) -> None:
    vault.put(place, SECRET)

    assert vault.get(place).reveal() == {"key_id": "PK1", "secret_key": "s3cret"}


def test_putting_again_changes_nothing(vault: Vault, place: Place) -> None:
    vault.put(place, SECRET)
    vault.put(place, SECRET)

    assert vault.get(place) == SECRET


def test_a_place_is_never_overwritten(vault: Vault, place: Place) -> None:
    vault.put(place, SECRET)

    with pytest.raises(Refused):
        vault.put(place, OTHER)

    assert vault.get(place) == SECRET


def test_versions_live_side_by_side_until_they_are_destroyed(vault: Vault, place: Place) -> None:
    newer = replace(place, version=2)
    vault.put(place, SECRET)
    vault.put(newer, OTHER)
    vault.destroy(place)

    assert vault.get(newer) == OTHER
    with pytest.raises(Destroyed):
        vault.get(place)


def test_nothing_is_missing_and_not_destroyed(vault: Vault, place: Place) -> None:
    with pytest.raises(Missing):
        vault.get(place)


@pytest.mark.parametrize("was_there", [True, False])
def test_a_worker_that_comes_late_finds_a_destroyed_place_closed(vault: Vault, place: Place, was_there: bool) -> None:
    if was_there:
        vault.put(place, SECRET)
    vault.destroy(place)
    vault.destroy(place)

    with pytest.raises(Destroyed):
        vault.put(place, SECRET)
    with pytest.raises(Destroyed):
        vault.get(place)


def test_a_secret_does_not_show_itself(vault: Vault, place: Place) -> None:
    vault.put(place, SECRET)

    assert "s3cret" not in repr(vault.get(place)) + str(vault.get(place)) + f"{vault.get(place)!r}"
