"""accounts' relay killed at every step, stopped and woken, without queue and without database: nothing is lost,
nothing falsely failed, and the vault ends up as if nothing had happened."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from accounts import usecases
from accounts.app import create_app, dependencies
from accounts.config import Config
from credential_vault import Destroyed, Missing, SecretPath, Vault
from tip_local.valkey import EmbeddedValkey
from tip_testing.accounts_caller import NEWER, SECRET, Caller, bearer, column, credential_path, secret_path
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.kv2_server import TOKEN, Kv2Server
from tip_testing.outbox import age_claims, rows, statuses
from tip_testing.platform_plugin import Platform
from tip_testing.processes import Running, start
from tip_testing.servers_plugin import PostgresServer
from tip_testing.waiting import eventually

STEPS = [
    "relay.after_claim",
    "accounts.after_put",
    "accounts.after_record",
    "accounts.after_destroy",
    "relay.after_publish",
]


class Relays:
    """Relay processes of accounts on one platform, ended with the test."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.running: list[Running] = []

    def start(self, **more: str) -> Running:
        started = start("-m", "accounts.worker", "relay", environment={**self.environment, **more})
        self.running.append(started)
        return started

    def end(self) -> None:
        for relay in self.running:
            relay.end()


@pytest.fixture
def relays(platform: Platform) -> Iterator[Relays]:
    relays = Relays(platform.environment("accounts"))
    yield relays
    relays.end()


@pytest.fixture
def earlier(deps: usecases.Deps) -> int:
    """The last row of the tests before this one."""
    return int(column(deps, "SELECT coalesce(max(id), 0) FROM accounts.outbox")[0])


def new_rows(deps: usecases.Deps, earlier: int) -> list[Any]:
    return [row for row in rows(deps.outbox) if row.id > earlier]


def all_done(deps: usecases.Deps) -> bool:
    return set(statuses(deps.outbox)) == {"completed"}


def _gone(vault: Vault, path: SecretPath) -> bool:
    try:
        vault.get(path)
    except (Destroyed, Missing):
        return True
    return False


def _rotate(admin: Caller, credential: dict[str, Any], secret: dict[str, str]) -> None:
    assert admin.call("PUT", f"{credential_path(credential)}/secret", json={"secret": secret}).status_code == 200


@pytest.mark.parametrize("step", STEPS)
def test_a_relay_killed_at_any_step_leaves_work_that_the_next_one_finishes(
    admin: Caller, relays: Relays, deps: usecases.Deps, earlier: int, step: str
) -> None:
    account_id = admin.account()["id"]
    kept, dropped = admin.credential(account_id), admin.credential(account_id)
    _rotate(admin, kept, NEWER)
    admin.call("DELETE", f"/v1/accounts/{account_id}/credentials/{dropped['id']}")

    killed = relays.start(TIP_CRASH_AT=step)
    assert killed.wait() == -signal.SIGKILL
    assert "processing" in statuses(deps.outbox)
    age_claims(deps.outbox, 6)
    relays.start()

    eventually(lambda: all_done(deps))
    assert max(row.attempts for row in new_rows(deps, earlier)) <= 2
    assert deps.vault.get(secret_path(kept, 2)).reveal() == NEWER
    assert _gone(deps.vault, secret_path(kept, 1)) and _gone(deps.vault, secret_path(dropped, 1))
    assert column(deps, "SELECT count(*) FROM accounts.sealed_secret") == [0]
    held = "SELECT status FROM accounts.credential WHERE account_id = :id ORDER BY deleted_at NULLS FIRST"
    assert column(deps, held, id=account_id) == ["pending", "revoked"]


@pytest.fixture
def kv2() -> Iterator[Kv2Server]:
    server = Kv2Server()
    yield server
    server.open.set()
    server.close()


def test_a_relay_stopped_for_longer_than_its_claim_changes_nothing_when_it_comes_back(
    identity: IdentityFixtures, platform: Platform, kv2: Kv2Server
) -> None:
    vault = {"VAULT": "hashicorp", "VAULT_ADDR": kv2.address, "VAULT_TOKEN": TOKEN}
    environment = platform.environment("accounts", **vault)
    client = create_app(platform.web_environment("accounts", **vault)).test_client()
    deps = dependencies(Config.from_env(environment))
    admin = Caller(client, bearer(identity.organization().tokens["admin"]))
    relays = Relays(environment)
    try:
        kv2.open.clear()
        credential = admin.credential(admin.account()["id"])
        sleeper = relays.start()
        assert kv2.received.wait(timeout=60)
        sleeper.freeze()  # in the middle of its call to the vault
        kv2.open.set()
        other = relays.start()
        eventually(lambda: all_done(deps))
        [row] = [row for row in rows(deps.outbox) if row.payload.get("credential_id") == credential["id"]]
        assert row.attempts == 2  # taken back from the one that stopped
        _rotate(admin, credential, NEWER)
        eventually(lambda: all_done(deps))
        before = [(row.id, row.attempts, row.settled_at) for row in rows(deps.outbox)]
        other.end()

        sleeper.thaw()
        admin.account()
        eventually(lambda: all_done(deps))  # so it has ended what it was at, and gone on

        assert [(row.id, row.attempts, row.settled_at) for row in rows(deps.outbox)][: len(before)] == before
        assert deps.vault.get(secret_path(credential, 2)).reveal() == NEWER
        assert _gone(deps.vault, secret_path(credential, 1))
        held = "SELECT status FROM accounts.credential WHERE id = :id"
        assert column(deps, held, id=credential["id"]) == ["pending"]
    finally:
        relays.end()


def test_without_its_queue_accounts_takes_every_change_and_fails_none(
    admin: Caller, relays: Relays, deps: usecases.Deps, earlier: int, server_directory: Path
) -> None:
    queue = EmbeddedValkey(server_directory / "own-queue", fast=True)
    queue.start()
    address = queue.url
    queue.stop()
    relay = relays.start(QUEUE_URL=address, OUTBOX_ATTEMPT_LIMIT="2")
    credentials = [admin.credential(admin.account()["id"]) for _ in range(5)]
    eventually(lambda: relay.output().count("outbox_rows_released") >= 3)  # it has tried in vain, again and again
    waiting = {(row.status, row.attempts) for row in new_rows(deps, earlier)}

    queue.start()
    try:
        with redis.Redis.from_url(address) as server:
            eventually(lambda: all_done(deps))
            server.flushall()
            admin.account()
            eventually(lambda: all_done(deps))
            messages = int(server.llen("tip.intents.consumer"))
    finally:
        queue.stop()

    assert {status for status, _ in waiting} <= {"pending", "processing"}
    assert max(attempts for _, attempts in waiting) <= 1
    assert messages >= 1
    assert all(deps.vault.get(secret_path(credential, 1)).reveal() == SECRET for credential in credentials)


def test_a_database_restarted_under_it_loses_nothing_that_was_answered(
    admin: Caller, relays: Relays, deps: usecases.Deps, earlier: int, postgres_server: PostgresServer
) -> None:
    if postgres_server.embedded is None:
        pytest.skip("an existing Postgres server is used, and it is not ours to restart")
    account_id = admin.account()["id"]
    relays.start()
    before = [admin.credential(account_id) for _ in range(10)]
    postgres_server.embedded.stop()
    during = admin.post(f"/v1/accounts/{account_id}/credentials", {"label": "x", "secret": SECRET})
    postgres_server.embedded.start()
    after = [admin.credential(account_id) for _ in range(10)]

    eventually(lambda: all_done(deps))

    assert (during.status_code, during.json["code"]) == (503, "unavailable")
    assert all(deps.vault.get(secret_path(credential, 1)).reveal() == SECRET for credential in before + after)
    held = "SELECT DISTINCT status FROM accounts.credential WHERE account_id = :id"
    assert column(deps, held, id=account_id) == ["pending"]
    assert max(row.attempts for row in new_rows(deps, earlier)) <= 3
