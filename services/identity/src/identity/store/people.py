"""Users, their memberships, and their deletion."""

from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, func, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from identity import model
from identity.store.tables import app_user, membership, organization


def ensure_user(tx: Connection, new_id: UUID, provider: str, subject: str) -> model.User:
    """The user, new or not, with nobody else changing or deleting them until the transaction ends."""
    tx.execute(upsert(app_user).values(id=new_id, provider=provider, subject=subject).on_conflict_do_nothing())
    wanted = select(app_user).where(app_user.c.provider == provider, app_user.c.subject == subject)
    return _user(tx.execute(wanted.with_for_update()).one())


def page(tx: Connection, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int) -> list[model.Member]:
    found = _members(organization_id).order_by(membership.c.created_at, membership.c.user_id).limit(limit)
    if after:
        found = found.where(tuple_(membership.c.created_at, membership.c.user_id) > tuple_(*after))
    return [_member(row) for row in tx.execute(found)]


def member(tx: Connection, organization_id: UUID, subject: str) -> model.Member | None:
    row = tx.execute(_members(organization_id).where(app_user.c.subject == subject)).one_or_none()
    return _member(row) if row else None


def standing(tx: Connection, organization_id: UUID, provider: str, subject: str) -> model.Standing | None:
    """What is recorded of the user in the organization, also a membership taken away; None if nothing is.

    Who was deleted stands nowhere, also without a membership.
    """
    own = (membership.c.user_id == app_user.c.id) & (membership.c.organization_id == organization_id)
    found = (
        select(membership.c.role, func.coalesce(membership.c.removed_at, app_user.c.deleted_at).label("ended_at"))
        .select_from(app_user)
        .outerjoin(membership, own)
        .where(app_user.c.provider == provider, app_user.c.subject == subject)
        .where(membership.c.user_id.is_not(None) | app_user.c.deleted_at.is_not(None))
    )
    row = tx.execute(found).one_or_none()
    return model.Standing(None if row.ended_at else row.role) if row else None


def count(tx: Connection, organization_id: UUID) -> int:
    return tx.execute(select(func.count()).select_from(_members(organization_id).subquery())).scalar_one()


def some_admins(tx: Connection, organization_id: UUID) -> list[str]:
    """Up to two admins by their subjects: enough to know whether there is more than one."""
    found = _members(organization_id).where(membership.c.role == model.ADMIN).limit(2)
    return [row.subject for row in tx.execute(found)]


def _members(organization_id: UUID) -> Select[Any]:
    return (
        select(app_user.c.subject, membership.c.user_id, membership.c.role, membership.c.created_at)
        .join(app_user, app_user.c.id == membership.c.user_id)
        .where(membership.c.organization_id == organization_id, membership.c.removed_at.is_(None))
    )


def _member(row: Any) -> model.Member:
    return model.Member(row.subject, row.user_id, row.role, row.created_at)


def memberships_of(tx: Connection, user_id: UUID) -> list[model.Membership]:
    """Where the user belongs, disabled organizations left out."""
    found = (
        select(organization.c.id, organization.c.external_id, organization.c.name, membership.c.role)
        .join(organization, organization.c.id == membership.c.organization_id)
        .where(membership.c.user_id == user_id, membership.c.removed_at.is_(None), ~organization.c.disabled)
        .order_by(organization.c.created_at, organization.c.id)
    )
    return [model.Membership(row.id, row.external_id, row.name, row.role) for row in tx.execute(found)]


def organizations_of(tx: Connection, user_id: UUID) -> list[UUID]:
    """Where the user belongs, in the order of the ids: whoever locks several does so in this order."""
    own = (membership.c.user_id == user_id) & membership.c.removed_at.is_(None)
    return list(tx.execute(select(membership.c.organization_id).where(own).order_by("organization_id")).scalars())


def subject_of(tx: Connection, user_id: UUID) -> str:
    subject: str = tx.execute(select(app_user.c.subject).where(app_user.c.id == user_id)).scalar_one()
    return subject


def put_member(tx: Connection, organization_id: UUID, user_id: UUID, role: str) -> None:
    """Also who was removed."""
    new = upsert(membership).values(organization_id=organization_id, user_id=user_id, role=role)
    again = {"role": role, "removed_at": None}
    tx.execute(new.on_conflict_do_update(index_elements=["organization_id", "user_id"], set_=again))


def remove_member(tx: Connection, organization_id: UUID, user_id: UUID) -> None:
    """The row stays, marked as removed: otherwise the provider's claim would count again."""
    new = upsert(membership).values(
        organization_id=organization_id, user_id=user_id, role="read_only", removed_at=func.now()
    )
    tx.execute(
        new.on_conflict_do_update(index_elements=["organization_id", "user_id"], set_={"removed_at": func.now()})
    )


def begin_deletion(tx: Connection, user_id: UUID) -> datetime | None:
    """Note that a deletion is under way; the moment by which this attempt can be withdrawn.

    None if an attempt before it is still open: that one may have got through, so the note is no longer this one's.
    """
    own = app_user.c.id == user_id
    open_since = tx.execute(select(app_user.c.deletion_begun_at).where(own).with_for_update()).scalar_one()
    begun = update(app_user).where(own).values(deletion_begun_at=func.clock_timestamp())
    moment: datetime = tx.execute(begun.returning(app_user.c.deletion_begun_at)).scalar_one()
    return None if open_since else moment


def withdraw_deletion(tx: Connection, user_id: UUID, begun_at: datetime) -> bool:
    """Forget this attempt, unless another one has begun since; whether it is forgotten."""
    own = (app_user.c.id == user_id) & (app_user.c.deletion_begun_at == begun_at) & app_user.c.deleted_at.is_(None)
    return tx.execute(update(app_user).where(own).values(deletion_begun_at=None)).rowcount == 1


def is_deleted(tx: Connection, user_id: UUID) -> bool:
    deleted = select(app_user.c.id).where(app_user.c.id == user_id, app_user.c.deleted_at.is_not(None))
    return tx.execute(deleted).first() is not None


def take_unfinished_deletion(tx: Connection, abandoned_after: timedelta) -> model.User | None:
    """One whose attempt has been silent too long, made this caller's attempt; None if there is none."""
    oldest = (
        select(app_user.c.id)
        .where(app_user.c.deleted_at.is_(None), app_user.c.deletion_begun_at < func.now() - abandoned_after)
        .order_by(app_user.c.deletion_begun_at)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    taken = update(app_user).where(app_user.c.id == oldest).values(deletion_begun_at=func.clock_timestamp())
    row = tx.execute(taken.returning(app_user)).one_or_none()
    return _user(row) if row else None


def mark_deleted(tx: Connection, user_id: UUID) -> bool:
    """Whether this call marked the user: of many calls only one did."""
    alive = (app_user.c.id == user_id) & app_user.c.deleted_at.is_(None)
    return tx.execute(update(app_user).where(alive).values(deleted_at=func.now())).rowcount == 1


def end_memberships(tx: Connection, user_id: UUID) -> list[tuple[UUID, model.Standing]]:
    """Where the user belonged until now, and as what; in the order of the ids."""
    current = (membership.c.user_id == user_id) & membership.c.removed_at.is_(None)
    ended = update(membership).where(current).values(removed_at=func.now())
    rows = tx.execute(ended.returning(membership.c.organization_id, membership.c.role))
    return sorted(((row.organization_id, model.Standing(row.role)) for row in rows), key=itemgetter(0))


def _user(row: Any) -> model.User:
    return model.User(row.id, row.provider, row.subject, row.created_at, row.deleted_at)
