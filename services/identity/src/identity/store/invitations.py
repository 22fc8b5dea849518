"""Invitations that are open: never the code, only its digest. One that ended is gone; the audit log knows of it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_

from identity import model
from identity.store.login_tables import is_shown
from identity.store.tables import invitation

_SHOWN = [column for column in invitation.c if column.name != "code_digest"]
_OPEN = invitation.c.expires_at > func.now()


def add(
    tx: Connection, invitation_id: UUID, organization_id: UUID, lifetime: timedelta, values: Mapping[str, Any]
) -> model.Invitation:
    whose = {"id": invitation_id, "organization_id": organization_id}
    added = insert(invitation).values(**whose, **values, expires_at=func.now() + lifetime).returning(*_SHOWN)
    return _invitation(tx.execute(added).one())


def find(tx: Connection, organization_id: UUID, invitation_id: UUID) -> model.Invitation | None:
    return _find(tx, _open(organization_id).where(invitation.c.id == invitation_id))


def find_by_digest(tx: Connection, digest: bytes) -> model.Invitation | None:
    return _find(tx, select(*_SHOWN).where(is_shown(invitation.c.code_digest, digest), _OPEN))


def page(
    tx: Connection, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int
) -> list[model.Invitation]:
    found = _open(organization_id).order_by(invitation.c.created_at, invitation.c.id).limit(limit)
    if after:
        found = found.where(tuple_(invitation.c.created_at, invitation.c.id) > tuple_(*after))
    return [_invitation(row) for row in tx.execute(found)]


def count(tx: Connection, organization_id: UUID) -> int:
    return tx.execute(select(func.count()).select_from(_open(organization_id).subquery())).scalar_one()


def remove(tx: Connection, organization_id: UUID, invitation_id: UUID) -> model.Invitation | None:
    own = (invitation.c.organization_id == organization_id) & (invitation.c.id == invitation_id)
    return _find(tx, delete(invitation).where(own, _OPEN).returning(*_SHOWN))


def remove_of(tx: Connection, organization_id: UUID, subject: str) -> model.Invitation | None:
    """The open one for this person."""
    own = (invitation.c.organization_id == organization_id) & (invitation.c.subject == subject)
    return _find(tx, delete(invitation).where(own, _OPEN).returning(*_SHOWN))


def remove_expired(tx: Connection, organization_id: UUID) -> None:
    tx.execute(delete(invitation).where(invitation.c.organization_id == organization_id, ~_OPEN))


def _open(organization_id: UUID) -> Select[Any]:
    return select(*_SHOWN).where(invitation.c.organization_id == organization_id, _OPEN)


def _find(tx: Connection, statement: Any) -> model.Invitation | None:
    row = tx.execute(statement).one_or_none()
    return _invitation(row) if row else None


def _invitation(row: Any) -> model.Invitation:
    return model.Invitation(**{column.name: getattr(row, column.name) for column in _SHOWN})
