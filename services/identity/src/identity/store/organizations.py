"""Organizations and what they are entitled to."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, delete, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from identity import model
from identity.store.tables import entitlement, membership, organization


def add(tx: Connection, new_id: UUID, provider: str, external_id: str, name: str) -> model.Organization | None:
    """The new organization; None if the provider's id is taken."""
    values = {"id": new_id, "provider": provider, "external_id": external_id, "name": name}
    added = upsert(organization).values(values).on_conflict_do_nothing().returning(organization)
    return _find(tx, added)


def find(tx: Connection, organization_id: UUID) -> model.Organization | None:
    return _find(tx, select(organization).where(organization.c.id == organization_id))


def lock(tx: Connection, organization_id: UUID) -> model.Organization | None:
    """The organization, with nobody else changing it or its members until the transaction ends."""
    return _find(tx, select(organization).where(organization.c.id == organization_id).with_for_update())


def find_by_external_id(tx: Connection, provider: str, external_id: str) -> model.Organization | None:
    return _find(tx, _with_external_id(provider, external_id))


def find_of_member(tx: Connection, provider: str, external_id: str, user_id: UUID) -> model.Organization | None:
    """The organization, if it is active and the user belongs to it."""
    belongs = select(membership.c.user_id).where(
        membership.c.organization_id == organization.c.id,
        membership.c.user_id == user_id,
        membership.c.removed_at.is_(None),
    )
    found = _with_external_id(provider, external_id).where(~organization.c.disabled, belongs.exists())
    return _find(tx, found)


def page(tx: Connection, after: tuple[datetime, UUID] | None, limit: int) -> list[model.Organization]:
    position = tuple_(organization.c.created_at, organization.c.id)
    found = select(organization).order_by(organization.c.created_at, organization.c.id).limit(limit)
    rows = tx.execute(found.where(position > tuple_(*after)) if after else found)
    return [_organization(row) for row in rows]


def change(tx: Connection, organization_id: UUID, values: Mapping[str, Any]) -> model.Organization | None:
    changed = update(organization).where(organization.c.id == organization_id).values(**values)
    return _find(tx, changed.returning(organization))


def entitlements(
    tx: Connection, organization_id: UUID, after: tuple[datetime, str] | None, limit: int
) -> list[model.Entitlement]:
    found = select(entitlement).where(entitlement.c.organization_id == organization_id)
    found = found.order_by(entitlement.c.created_at, entitlement.c.name).limit(limit)
    if after:
        found = found.where(tuple_(entitlement.c.created_at, entitlement.c.name) > tuple_(*after))
    return [_entitlement(row) for row in tx.execute(found)]


def entitlement_named(tx: Connection, organization_id: UUID, name: str) -> model.Entitlement | None:
    row = tx.execute(select(entitlement).where(_own(organization_id, name))).one_or_none()
    return _entitlement(row) if row else None


def put_entitlement(tx: Connection, organization_id: UUID, name: str, expires_at: datetime | None) -> model.Entitlement:
    new = upsert(entitlement).values(organization_id=organization_id, name=name, expires_at=expires_at)
    put = new.on_conflict_do_update(index_elements=["organization_id", "name"], set_={"expires_at": expires_at})
    return _entitlement(tx.execute(put.returning(entitlement)).one())


def drop_entitlement(tx: Connection, organization_id: UUID, name: str) -> model.Entitlement | None:
    row = tx.execute(delete(entitlement).where(_own(organization_id, name)).returning(entitlement)).one_or_none()
    return _entitlement(row) if row else None


def _own(organization_id: UUID, name: str) -> Any:
    return (entitlement.c.organization_id == organization_id) & (entitlement.c.name == name)


def _with_external_id(provider: str, external_id: str) -> Select[Any]:
    return select(organization).where(organization.c.provider == provider, organization.c.external_id == external_id)


def _find(tx: Connection, statement: Any) -> model.Organization | None:
    row = tx.execute(statement).one_or_none()
    return _organization(row) if row else None


def _organization(row: Any) -> model.Organization:
    return model.Organization(
        row.id, row.external_id, row.name, row.provider, row.disabled, row.created_at, row.totp_required
    )


def _entitlement(row: Any) -> model.Entitlement:
    return model.Entitlement(row.organization_id, row.name, row.expires_at, row.created_at)
