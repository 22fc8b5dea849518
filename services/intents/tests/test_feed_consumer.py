"""Events of controls and accounts are in the log of the accounts that they concern, once."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from chassis.outbox import Event, Outbox
from intents import usecases
from tip_testing.commands import create
from tip_testing.processes import running
from tip_testing.waiting import eventually

from .conftest import Desk


def publish(desk: Desk, source: str, event_type: str, **payload: Any) -> None:
    """As the service and its relay would."""
    position = desk.admin.execute(
        text(f"UPDATE {source}.outbox_head SET last_position = last_position + 1 RETURNING last_position")
    ).scalar_one()
    event_id = Outbox(desk.admin.engine, source).append(
        desk.admin, Event(event_type, {"organization_id": str(desk.organization.id), **payload})
    )
    desk.admin.execute(
        text(f"UPDATE {source}.outbox SET status = 'completed', position = :position WHERE event_id = :event_id"),
        {"position": position, "event_id": event_id},
    )


def drain(desk: Desk) -> int:
    return sum(usecases.drain_feed(desk.deps, source) for source in usecases.FEEDS)


def events(desk: Desk) -> list[tuple[int, str, Any]]:
    found = desk.execute(
        "SELECT sequence, type, payload FROM intents_api.event_log WHERE account_id = :account_id "
        "AND type IN ('CONTROL', 'ACCOUNT') ORDER BY sequence"
    )
    return [tuple(row) for row in found]


def test_a_control_of_an_account_is_in_its_log_and_in_no_other(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    other = new_desk(organization=desk.organization)
    desk.created(create())
    control = {"control": "symbol_manual", "symbol": "AAPL", "version": 3, "deleted": False}
    control["actor"] = {"type": "user", "id": "u"}
    publish(desk, "controls", "control.updated", account_id=str(desk.account_id), **control)

    assert drain(desk) == 1
    assert drain(desk) == 0

    desk.created(create())
    assert events(desk) == [(2, "CONTROL", {"organization_id": str(desk.organization.id), **control})]
    assert events(other) == []
    assert desk.get("/verify").json["valid"] is True
    assert [action["sequence"] for action in desk.get().json["data"]] == [1, 3]


def test_a_control_of_an_organization_is_in_the_log_of_each_of_its_accounts(new_desk: Callable[..., Desk]) -> None:
    desk = new_desk()
    same, foreign = new_desk(organization=desk.organization), new_desk()
    desk.created(create())
    publish(desk, "controls", "control.updated", control="organization_switch", version=1, deleted=True)

    drain(desk)

    payload = {"organization_id": str(desk.organization.id), "control": "organization_switch", "symbol": None}
    payload |= {"version": 1, "deleted": True, "actor": None}
    assert events(desk) == [(2, "CONTROL", payload)]
    assert events(same) == [(1, "CONTROL", payload)]
    assert events(foreign) == []


@pytest.mark.parametrize("credential_id", [None, str(uuid4())], ids=["account", "credential"])
def test_what_happens_to_an_account_is_in_its_log(desk: Desk, credential_id: str | None) -> None:
    event_type = "credential.updated" if credential_id else "account.updated"
    about = {"credential_id": credential_id} if credential_id else {}
    publish(desk, "accounts", event_type, account_id=str(desk.account_id), version=2, **about)

    drain(desk)

    payload = {"organization_id": str(desk.organization.id), "event_type": event_type}
    assert events(desk) == [(1, "ACCOUNT", {**payload, "credential_id": credential_id, "version": 2})]


def test_an_account_deleted_before_its_creation_is_consumed_holds_up_nobody(
    new_desk: Callable[..., Desk], desk: Desk
) -> None:
    deleted = new_desk()
    deleted.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")
    publish(deleted, "accounts", "account.created", account_id=str(deleted.account_id), version=1)
    publish(desk, "accounts", "account.updated", account_id=str(desk.account_id), version=2)

    assert drain(desk) == 2

    assert [payload["event_type"] for _, _, payload in events(desk)] == ["account.updated"]
    assert [row["organization_id"] for row in deleted.rows("account_event")] == [deleted.organization.id]


def test_many_that_drain_at_once_write_each_event_once(desk: Desk) -> None:
    for version in range(250):
        publish(desk, "accounts", "account.updated", account_id=str(desk.account_id), version=version)
    barrier = threading.Barrier(4)

    def drain_at_once(_: int) -> int:
        barrier.wait()
        return drain(desk)

    with ThreadPoolExecutor(4) as pool:
        consumed = sum(pool.map(drain_at_once, range(4)))

    assert consumed == 250
    assert [payload["version"] for _, _, payload in events(desk)] == list(range(250))
    assert [sequence for sequence, _, _ in events(desk)] == list(range(1, 251))


def until_logged(desk: Desk, count: int) -> None:
    eventually(lambda: len(events(desk)) >= count, 60)


def test_the_consumer_drains_the_feeds(desk: Desk) -> None:
    publish(desk, "accounts", "account.updated", account_id=str(desk.account_id), version=2)
    with running("-m", "intents.worker", "consumer", environment=desk.platform.environment("intents")) as consumer:
        until_logged(desk, 1)

        assert consumer.end(signal.SIGTERM) == 0
    assert [type_ for _, type_, _ in events(desk)] == ["ACCOUNT"]
