"""The audit log of each organization: appended to, never changed."""

import operator
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, insert, select, text

from identity import audit
from identity.store.tables import audit_entry

_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('identity.audit_entry ' || :organization_id, 0))")
_COLUMNS = audit_entry.c


def append(tx: Connection, change: audit.Change, actor: audit.Actor, request_id: str | None) -> None:
    """Add an entry behind all others of the organization.

    Two transactions take turns, so that the order of the entries is that of the changes and none is missing between
    two that are seen. The turn is the last thing a change waits for: nobody who has it waits for a row.
    """
    tx.execute(_LOCK, {"organization_id": str(change.organization_id)})
    own = _COLUMNS.organization_id == change.organization_id
    last = select(func.coalesce(func.max(_COLUMNS.sequence), 0)).where(own).scalar_subquery()
    before, after = change.values
    what = {"type": change.type, "target": change.target, "value_before": before, "value_after": after}
    whose = {"actor_type": actor.type, "actor_id": actor.id, "request_id": request_id}
    tx.execute(insert(audit_entry).values(organization_id=change.organization_id, sequence=last + 1, **what, **whose))


def last_sequence(tx: Connection, organization_id: UUID) -> int:
    newest = select(func.coalesce(func.max(_COLUMNS.sequence), 0)).where(_COLUMNS.organization_id == organization_id)
    last: int = tx.execute(newest).scalar_one()
    return last


def newest(
    tx: Connection, organization_id: UUID, wanted: audit.Filter, before: int | None, limit: int
) -> list[audit.Entry]:
    """Newest first, beginning before this one."""
    found = _entries(organization_id, wanted).order_by(_COLUMNS.sequence.desc()).limit(limit)
    rows = tx.execute(found if before is None else found.where(_COLUMNS.sequence < before)).mappings()
    return [_entry(dict(row)) for row in rows]


def between(
    tx: Connection, organization_id: UUID, wanted: audit.Filter, after: int, last: int, limit: int
) -> list[audit.Entry]:
    """Oldest first, behind one and up to another."""
    found = _entries(organization_id, wanted).where(_COLUMNS.sequence > after, _COLUMNS.sequence <= last)
    rows = tx.execute(found.order_by(_COLUMNS.sequence).limit(limit)).mappings()
    return [_entry(dict(row)) for row in rows]


def _entries(organization_id: UUID, wanted: audit.Filter) -> Select[Any]:
    conditions = (
        (_COLUMNS.type, operator.eq, wanted.type),
        (_COLUMNS.target, operator.eq, wanted.target),
        (_COLUMNS.actor_id, operator.eq, wanted.actor),
        (_COLUMNS.created_at, operator.ge, wanted.since),
        (_COLUMNS.created_at, operator.lt, wanted.to),
    )
    given = [compare(column, value) for column, compare, value in conditions if value is not None]
    return select(audit_entry).where(_COLUMNS.organization_id == organization_id, *given)


def _entry(row: dict[str, Any]) -> audit.Entry:
    actor = audit.Actor(row.pop("actor_type"), row.pop("actor_id"))
    return audit.Entry(**row, actor=actor)
