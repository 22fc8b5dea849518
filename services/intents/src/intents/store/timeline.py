"""What is read for the timeline of an intent: each kind of entry by the intent's index, in the order of keys."""

from collections.abc import Iterator
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from intents import model
from intents.model.timeline import (
    CALL,
    COMMAND,
    KINDS,
    REPORT,
    GivenCommand,
    LoggedReport,
    MadeCall,
    TimelineEntry,
    TimelineKey,
)

TIMELINE_BEGINNING = TimelineKey(datetime(1, 1, 1, tzinfo=UTC), 0, "")


def _after(moment: str, kind: str, name: str) -> str:
    """That an entry comes after a key, and the order of those that do."""
    return f"""AND ({moment}, {KINDS.index(kind)}, CAST({name} AS text) COLLATE "C") > (:at, :kind, :name)
        ORDER BY {moment}, CAST({name} AS text) COLLATE "C" LIMIT :limit"""


_PLACE = "lpad(CAST(e.sequence AS text), 19, '0')"
_LATER_COMMANDS = _after("a.created_at", COMMAND, "a.id")
_LATER_CALLS = _after("c.started_at", CALL, "c.key")
_LATER_REPORTS = _after("e.created_at", REPORT, _PLACE)
_COMMANDS = text(f"""
    SELECT a.created_at AS at, a.id AS name, a.sequence, a.id AS action_id, a.type, a.payload, a.actor_type, a.actor_id,
           a.reason, a.controls, a.from_status, a.to_status, a.request_id, a.traceparent
    FROM intents.intent i JOIN intents.action a ON a.intent_id = i.id
    WHERE i.account_id = :account_id AND i.id = :intent_id {_LATER_COMMANDS}
""")  # noqa: S608 - only our own words
_CALLS = text(f"""
    SELECT c.started_at AS at, c.key AS name, c.action_id, c.verb, c.result, c.reason, c.milliseconds, c.times,
           c.last_started_at
    FROM intents.broker_call c
    WHERE c.account_id = :account_id AND c.intent_id = :intent_id {_LATER_CALLS}
""")  # noqa: S608 - only our own words
_REPORTS = text(f"""
    SELECT e.created_at AS at, {_PLACE} AS name, e.sequence, e.type, e.occurred_at,
           e.from_status, e.to_status, e.traceparent, e.payload
    FROM intents.intent i JOIN intents.account_event e ON e.intent_id = i.id
    WHERE i.account_id = :account_id AND i.id = :intent_id
    {_LATER_REPORTS}
""")  # noqa: S608 - only our own words


def timeline(tx: Connection, account_id: UUID, intent_id: UUID, after: TimelineKey, limit: int) -> list[TimelineEntry]:
    """Entries that follow a key, in order."""
    values = {"account_id": account_id, "intent_id": intent_id, **after._asdict(), "limit": limit}
    found = [*_commands(tx, values), *_calls(tx, values), *_reports(tx, values)]
    return sorted(found, key=attrgetter("key"))[:limit]


def _commands(tx: Connection, values: dict[str, Any]) -> Iterator[TimelineEntry]:
    for row in tx.execute(_COMMANDS, values).mappings():
        given = {name: row[name] for name in GivenCommand._fields if name not in ("key", "actor")}
        actor = model.Actor(row["actor_type"], row["actor_id"])
        yield GivenCommand(key=_key(row, COMMAND), actor=actor, **given)


def _calls(tx: Connection, values: dict[str, Any]) -> Iterator[TimelineEntry]:
    for row in tx.execute(_CALLS, values).mappings():
        yield MadeCall(_key(row, CALL), **{name: row[name] for name in MadeCall._fields[1:]})


def _reports(tx: Connection, values: dict[str, Any]) -> Iterator[TimelineEntry]:
    for row in tx.execute(_REPORTS, values).mappings():
        yield LoggedReport(_key(row, REPORT), **{name: row[name] for name in LoggedReport._fields[1:]})


def _key(row: Any, kind: str) -> TimelineKey:
    return TimelineKey(row["at"], KINDS.index(kind), str(row["name"]))
