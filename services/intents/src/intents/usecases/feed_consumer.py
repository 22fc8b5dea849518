"""Events of controls and accounts, appended to the log of each account that they concern, for the stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection

from chassis.feed import Feed, FeedEvent
from intents import store
from intents.model import Actor
from intents.usecases.deps import Deps


class Logged(NamedTuple):
    """How events of one feed are logged: under which type, with which fields of their payload."""

    type: str
    fields: Sequence[str]
    cancel_reason: str
    """Of the CANCELs that an event with `cancel_open` brings about."""


FEEDS: Mapping[str, Logged] = {
    "controls": Logged(
        "CONTROL", ("organization_id", "control", "symbol", "version", "deleted", "actor"), "TRADING_HALTED"
    ),
    "accounts": Logged("ACCOUNT", ("organization_id", "event_type", "credential_id", "version"), "ACCOUNT_DELETED"),
}

READ_AFTER = frozenset({"account.created", "account.updated", "credential.created", "credential.updated"})
"""What may have opened another account at the broker, or the same one again: it is read at once."""


CANCELS_AT_ONCE = 10


@dataclass
class CancelsAhead:
    """Begins the cancels of halts and deletions at once, however much of their feed is to be consumed before.

    A feed is consumed in order, for all organizations: the changes of one must not put off the kill switch of another.
    What was begun here exists already when the feed comes to it.
    """

    deps: Deps
    _begun: dict[str, set[int]] = field(default_factory=dict, init=False)

    def begin(self, stop: Event | None = None) -> int:
        """How many there were."""
        return sum(self._begin_some(source) for source in FEEDS if not (stop and stop.is_set()))

    def _begin_some(self, source: str) -> int:
        with self.deps.engine.begin() as tx:
            consumed = store.feed_position(tx, source)
            begun = {position for position in self._begun.get(source, ()) if position > consumed}
            waiting = store.waiting_cancels(tx, source, consumed, begun, CANCELS_AT_ONCE)
        for event in waiting:
            organization_id = UUID(event.payload["organization_id"])
            with self.deps.engine.begin() as tx:
                accounts = _concerned(tx, organization_id, event.payload)
                _cancel_open(tx, event, organization_id, accounts, FEEDS[source].cancel_reason)
        self._begun[source] = begun | {event.position for event in waiting}
        return len(waiting)


def drain_feed(deps: Deps, source: str, stop: Event | None = None) -> int:
    """Append every event not yet consumed, each once: the feed position is saved with it. How many there were."""
    heads: dict[UUID, int] = {}

    def handle(tx: Connection, event: FeedEvent) -> None:
        heads.update(_append(tx, event, FEEDS[source]))
        if event.event_type in READ_AFTER:
            store.request_read(
                tx, UUID(event.payload["organization_id"]), UUID(event.payload["account_id"]), shortest_seconds=0.0
            )

    # One by one: a transaction with several would lock accounts in the order of events, and submits lock them in their
    # own, so that the two could deadlock.
    consumed = Feed(deps.engine, store.SCHEMA, source, batch=1).drain(handle, stop)
    for account_id, sequence in heads.items():
        deps.hints.publish(account_id, sequence)
    return consumed


def _append(tx: Connection, event: FeedEvent, logged: Logged) -> Mapping[UUID, int]:
    values = {
        "id": event.event_id,
        "type": logged.type,
        "payload": {name: event.payload.get(name) for name in logged.fields},
        "occurred_at": datetime.fromisoformat(event.payload["occurred_at"]),
    }
    organization_id = UUID(event.payload["organization_id"])
    accounts = _concerned(tx, organization_id, event.payload)
    if event.payload.get("cancel_open"):
        _cancel_open(tx, event, organization_id, accounts, logged.cancel_reason)
    return store.append_to_all(tx, organization_id, accounts, values)


def _cancel_open(
    tx: Connection, event: FeedEvent, organization_id: UUID, accounts: Sequence[UUID], reason: str
) -> None:
    """A bulk operation for each account, under the id of the event: so there is one however often it is delivered."""
    actor = Actor(**event.payload["actor"])
    store.insert_cancels_of_all(tx, event.event_id, organization_id, accounts, actor, reason, event.traceparent)


def _concerned(tx: Connection, organization_id: UUID, payload: Mapping[str, Any]) -> list[UUID]:
    """The account that the event names; for an event about an organization, all its accounts."""
    if "account_id" in payload:
        return [UUID(payload["account_id"])]
    return store.accounts_of(tx, organization_id)
