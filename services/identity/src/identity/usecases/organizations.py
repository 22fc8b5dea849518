"""Organizations and what they are entitled to."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, tenancy
from chassis.principals import Kind, Principal
from identity import model
from identity.audit import Change
from identity.store import organizations as store
from identity.usecases.deps import Deps, see_organization


def create_organization(
    deps: Deps,
    provider: str,
    external_id: str,
    name: str,
    principal: Principal | None = None,
    *,
    organization_id: UUID | None = None,
) -> model.Organization:
    """A new organization. Its id is given only where it must be known beforehand, as that of the demo data."""
    with deps.outbox.begin() as tx:
        made = store.add(tx, organization_id or uuid4(), provider, external_id, name)
        if made is None:
            raise model.OrganizationExists
        deps.record_change(tx, principal, Change("organization.created", made.id, str(made.id), None, made))
    return made


def get_organization(deps: Deps, principal: Principal, organization_id: UUID) -> model.Organization:
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        return _found(store.find(tx, organization_id))


def get_organization_by_provider(
    deps: Deps, principal: Principal, provider: str, external_id: str
) -> model.Organization:
    """Any organization for a service account; for a user one they belong to, by membership or by their token."""
    if provider != deps.provider.name:
        raise model.NotFound
    with tenancy.serving_all(), db.reading(deps.engine) as tx:
        if principal.kind is Kind.SERVICE_ACCOUNT:
            return _found(store.find_by_external_id(tx, provider, external_id))
        if principal.user_id and (found := store.find_of_member(tx, provider, external_id, principal.user_id)):
            return found
        named = store.find(tx, principal.organization_id) if principal.organization_id else None
    return _found(named if named and named.external_id == external_id else None)


def list_organizations(deps: Deps, after: tuple[datetime, UUID] | None, limit: int) -> list[model.Organization]:
    with db.reading(deps.engine) as tx:
        return store.page(tx, after, limit)


def change_organization(
    deps: Deps, organization_id: UUID, changes: Mapping[str, Any], principal: Principal | None = None
) -> model.Organization:
    with deps.outbox.begin() as tx:
        before = _locked(tx, organization_id)
        changed = _found(store.change(tx, organization_id, changes))
        change = Change("organization.updated", organization_id, str(organization_id), before, changed)
        deps.record_change(tx, principal, change)
    return changed


def list_entitlements(
    deps: Deps, organization_id: UUID, after: tuple[datetime, str] | None, limit: int
) -> list[model.Entitlement]:
    with db.reading(deps.engine) as tx:
        _found(store.find(tx, organization_id))
        return store.entitlements(tx, organization_id, after, limit)


def get_entitlement(deps: Deps, organization_id: UUID, name: str) -> model.Entitlement:
    _check_name(name)
    with db.reading(deps.engine) as tx:
        held = store.entitlement_named(tx, organization_id, name)
    if held is None:
        raise model.NotFound
    return held


def put_entitlement(
    deps: Deps,
    organization_id: UUID,
    name: str,
    expires_at: datetime | None = None,
    principal: Principal | None = None,
) -> tuple[model.Entitlement, bool]:
    """The entitlement as it is now, and whether it is new."""
    _check_name(name)
    with deps.outbox.begin() as tx:
        _locked(tx, organization_id)
        before = store.entitlement_named(tx, organization_id, name)
        put = store.put_entitlement(tx, organization_id, name, expires_at)
        change = Change("entitlement.updated", organization_id, name, before, put)
        deps.record_change(tx, principal, change, entitlement=name)
    return put, before is None


def remove_entitlement(deps: Deps, organization_id: UUID, name: str, principal: Principal | None = None) -> None:
    _check_name(name)
    with deps.outbox.begin() as tx:
        before = store.drop_entitlement(tx, organization_id, name)
        if before is None:
            raise model.NotFound
        change = Change("entitlement.deleted", organization_id, name, before)
        deps.record_change(tx, principal, change, entitlement=name)


def _check_name(name: str) -> None:
    """A path can say anything, also what no database takes."""
    if name not in model.ENTITLEMENTS:
        raise model.NotFound


def _locked(tx: Connection, organization_id: UUID) -> model.Organization:
    return _found(store.lock(tx, organization_id))


def _found(organization: model.Organization | None) -> model.Organization:
    if organization is None:
        raise model.NotFound
    return organization
