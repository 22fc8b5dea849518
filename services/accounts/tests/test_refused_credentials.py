"""Credentials that a broker accepts, and those that it refuses."""

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from accounts import usecases, worker
from chassis import db, rest
from chassis.config import ServiceConfig
from chassis.feed import Feed
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from intents import worker as intents_worker
from tip_testing.accounts_caller import (
    NEWER,
    Caller,
    credential_path,
    drain,
)
from tip_testing.outbox import consuming
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running


def _append(intents: Outbox, credential: dict[str, Any], version: int, event_type: str = "credential.invalid") -> None:
    """As intents do when a broker refuses a credential."""
    payload = {"account_id": credential["account_id"], "credential_id": credential["id"], "version": version}
    with intents.begin() as tx:
        intents.append(tx, Event("intent.accepted", {}))
        intents.append(tx, Event(event_type, payload))


def _publish(intents: Outbox, credential: dict[str, Any], version: int, event_type: str = "credential.invalid") -> None:
    _append(intents, credential, version, event_type)
    with intents.engine.begin() as tx:
        claim = intents.claim(tx)
        intents.complete(tx, claim, [row.id for row in claim.rows])


def _until_invalid(admin: Caller, credential: dict[str, Any]) -> None:
    deadline = time.monotonic() + 60
    while admin.get(credential_path(credential)).json["status"] != "invalid":
        assert time.monotonic() < deadline, "nobody was woken"
        time.sleep(0.02)


@pytest.fixture
def intents(platform: Platform) -> Iterator[Outbox]:
    engine = db.engine(platform.database_url("intents"), pool_size=2, name="tests")
    yield Outbox(engine, "intents")
    engine.dispose()


def test_a_credential_is_active_when_the_broker_has_accepted_it(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, intents: Outbox
) -> None:
    feed, credential, seen = Feed(deps.engine, "accounts", "intents"), admin.credential(account_id), []

    def accepted(version: int) -> None:
        _publish(intents, credential, version, "credential.valid")
        feed.drain(usecases.apply_intents_event)
        seen.append(admin.get(credential_path(credential)).json["status"])

    accepted(1)  # nobody can have tested what is not in the vault
    drain(relay)
    accepted(1)
    admin.call("PUT", f"{credential_path(credential)}/secret", json={"secret": NEWER})
    accepted(1)  # late: the version before
    drain(relay)
    accepted(1)
    accepted(2)

    assert seen == ["pending", "active", "pending", "pending", "active"]


def test_a_credential_that_the_broker_refuses_is_invalid_until_it_is_rotated(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, intents: Outbox
) -> None:
    feed = Feed(deps.engine, "accounts", "intents")
    refused, other = admin.credential(account_id), admin.credential(account_id)
    drain(relay)
    _publish(intents, other, 1, "credential.valid")
    _publish(intents, refused, 1)
    _publish(intents, refused, 1, "credential.valid")  # what was refused is not accepted afterwards
    feed.drain(usecases.apply_intents_event)
    seen = [admin.get(credential_path(credential)).json["status"] for credential in (refused, other)]

    admin.call("PUT", f"{credential_path(refused)}/secret", json={"secret": NEWER})
    drain(relay)
    _publish(intents, refused, 1)  # late: the version before
    feed.drain(usecases.apply_intents_event)
    seen.append(admin.get(credential_path(refused)).json["status"])

    assert seen == ["invalid", "active", "pending"]


def test_a_refused_credential_wakes_the_consumer(
    admin: Caller, account_id: str, relay: Relay, platform: Platform, intents: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "FIRST_S", 600.0)
    queue_url = f"{platform.redis_url.rpartition('/')[0]}/7"  # where no other test leaves messages
    config = ServiceConfig.from_env(platform.environment("accounts", QUEUE_URL=queue_url))
    intents_relay = Relay(intents, Publisher(queue_url), intents_worker.ROUTES)
    with consuming(worker.consumer(config, "accounts-consumer"), worker.QUEUE, queue_url):
        for _ in range(3):
            credential = admin.credential(account_id)
            drain(relay)
            _append(intents, credential, 1)
            intents_relay.drain_once()
            _until_invalid(admin, credential)


def test_the_consumer_process_marks_a_refused_credential_and_ends_cleanly(
    admin: Caller, account_id: str, relay: Relay, platform: Platform, intents: Outbox
) -> None:
    credential = admin.credential(account_id)
    drain(relay)
    with running("-m", "accounts.worker", "consumer", environment=platform.environment("accounts")) as consumer:
        _publish(intents, credential, 1)
        _until_invalid(admin, credential)
        assert consumer.end(signal.SIGTERM) == 0
