"""What controls and accounts tell, put into the log of each account that it concerns, for the stream."""

import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from chassis.feed import Feed, Told
from intents import store
from intents.usecases.deps import Deps

CONTROL, ACCOUNT = "CONTROL", "ACCOUNT"
_OF_CONTROL = ("organization_id", "control", "symbol", "version", "deleted")
_OF_ACCOUNT = ("organization_id", "event_type", "credential_id", "version")


def hear(deps: Deps, stop: threading.Event | None = None) -> int:
    """Everything that was not heard yet, each once: the place in the feed is kept with the events. How much it was."""
    controls = _hear(deps, "controls", CONTROL, _OF_CONTROL, stop)
    return controls + _hear(deps, "accounts", ACCOUNT, _OF_ACCOUNT, stop)


def _hear(deps: Deps, source: str, event: str, shown: Sequence[str], stop: threading.Event | None) -> int:
    ends: dict[UUID, int] = {}

    def handle(tx: Connection, told: Told) -> None:
        ends.update(_append(tx, told, event, shown))

    # One by one: a transaction with several would take accounts in the order of events, and submits take them in their
    # own, so that the two could wait for each other.
    heard = Feed(deps.engine, store.SCHEMA, source, batch=1).catch_up(handle, stop)
    for account_id, sequence in ends.items():
        deps.hints.publish(account_id, sequence)
    return heard


def _append(tx: Connection, told: Told, event: str, shown: Sequence[str]) -> Mapping[UUID, int]:
    values = {
        "id": told.event_id,
        "type": event,
        "payload": {name: told.payload.get(name) for name in shown},
        "occurred_at": datetime.fromisoformat(told.payload["occurred_at"]),
    }
    organization_id = UUID(told.payload["organization_id"])
    return store.append_to_all(tx, organization_id, _concerned(tx, organization_id, told.payload), values)


def _concerned(tx: Connection, organization_id: UUID, payload: Mapping[str, Any]) -> list[UUID]:
    """The account that is named; of an organization as a whole, all that it has now."""
    if "account_id" in payload:
        return [UUID(payload["account_id"])]
    return store.accounts_of(tx, organization_id)
