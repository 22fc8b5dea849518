"""Users: what they are, where they belong."""

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, tenancy
from chassis.principals import Kind, Principal
from identity import model, model_login
from identity.audit import Change
from identity.store import logins, token_families
from identity.store import organizations as organization_store
from identity.store import people as store
from identity.usecases.deps import Deps, see_organization


def put_user(deps: Deps, provider: str, subject: str) -> UUID:
    """Store the provider's user; the user's id here."""
    with deps.engine.begin() as tx:
        return store.ensure_user(tx, uuid4(), provider, subject).id


def list_memberships(deps: Deps, principal: Principal) -> list[model.Membership]:
    """Where the caller was made a member; a provider's user may be known by the token alone and have none."""
    if principal.user_id is None:
        return []
    with tenancy.serving_all(), db.reading(deps.engine) as tx:
        return store.memberships_of(tx, principal.user_id)


def list_members(
    deps: Deps, principal: Principal, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int
) -> list[model.Member]:
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        if organization_store.find(tx, organization_id) is None:
            raise model.NotFound
        return store.page(tx, organization_id, after, limit)


def get_member(deps: Deps, principal: Principal, organization_id: UUID, subject: str) -> model.Member:
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        return _found(store.member(tx, organization_id, subject))


def put_member(deps: Deps, organization: model.Organization, subject: str, role: str) -> UUID:
    """Make the provider's user a member with this role, storing them if they are new; the user's id here."""
    with deps.outbox.begin() as tx:
        return enter_member(deps, tx, None, lock_organization(tx, organization.id), subject, role)[0].user_id


def change_member(
    deps: Deps, principal: Principal | None, organization_id: UUID, subject: str, role: str
) -> tuple[model.Member, bool]:
    """The member as they are now, and whether they are new. Without a principal: done by hand."""
    with deps.outbox.begin() as tx:
        organization = lock_as_admin(tx, principal, organization_id)
        if role != model.ADMIN:
            _keep_an_admin(tx, principal, organization_id, subject)
        if principal and not deps.provider.vouches:
            _refuse_claimed(tx, organization, subject)
        return enter_member(deps, tx, principal, organization, subject, role, says_deleted=principal is None)


def remove_member(deps: Deps, principal: Principal | None, organization_id: UUID, subject: str) -> None:
    """Also for one who is a member by the provider's claim only: it no longer counts here."""
    with deps.outbox.begin() as tx:
        organization = lock_as_admin(tx, principal, organization_id)
        _end_membership(deps, tx, principal, organization, subject)


def leave_organization(deps: Deps, principal: Principal, organization_id: UUID) -> None:
    """End the caller's own membership, wherever it is; one by the provider's claim only in the token's organization."""
    with tenancy.serving_all(), deps.outbox.begin() as tx:
        organization = lock_organization(tx, organization_id)
        belongs = store.member(tx, organization_id, principal.id) or principal.organization_id == organization_id
        if organization.provider != principal.provider or not belongs:
            raise model.NotFound
        _end_membership(deps, tx, principal, organization, principal.id)


def _end_membership(
    deps: Deps, tx: Connection, principal: Principal | None, organization: model.Organization, subject: str
) -> None:
    user_id = _member_id(deps, tx, organization, subject)
    _keep_an_admin(tx, principal, organization.id, subject)
    before = store.member(tx, organization.id, subject)
    store.remove_member(tx, organization.id, user_id)
    token_families.revoke_of_member(tx, organization.id, user_id)  # who is made a member again signs in again
    change = Change("membership.deleted", organization.id, subject, before)
    deps.record_change(tx, principal, change, user_id=user_id)


def enter_member(
    deps: Deps,
    tx: Connection,
    principal: Principal | None,
    organization: model.Organization,
    subject: str,
    role: str,
    *,
    says_deleted: bool = True,
) -> tuple[model.Member, bool]:
    """The organization is locked before the user, here as everywhere.

    An organization's admin learns of no deletion: it may have happened in another one. Such a member is like one who
    never signs in, because a deleted user is refused wherever a token is read.
    """
    user = store.ensure_user(tx, uuid4(), organization.provider, subject)
    if user.deleted_at and says_deleted:
        raise model.UserDeleted
    before = store.member(tx, organization.id, subject)
    store.put_member(tx, organization.id, user.id, role)
    if before is None:
        model.check_limit(store.count(tx, organization.id), deps.limits.members)
    after = _found(store.member(tx, organization.id, subject))
    change = Change("membership.updated", organization.id, subject, before, after)
    deps.record_change(tx, principal, change, user_id=user.id)
    return after, before is None


def _refuse_claimed(tx: Connection, organization: model.Organization, subject: str) -> None:
    """An invitation to another organization may have given a login to somebody who is not who is meant here."""
    is_known_here = store.standing(tx, organization.id, organization.provider, subject) is not None
    if not is_known_here and logins.has_login(tx, organization.provider, subject):
        raise model_login.LoginExists


def _member_id(deps: Deps, tx: Connection, organization: model.Organization, subject: str) -> UUID:
    if deps.provider.vouches:
        return store.ensure_user(tx, uuid4(), organization.provider, subject).id
    return _found(store.member(tx, organization.id, subject)).user_id


def _keep_an_admin(tx: Connection, principal: Principal | None, organization_id: UUID, subject: str) -> None:
    """Users cannot lock their organization out of itself; an operator by hand can."""
    if principal and model.is_last_admin(store.some_admins(tx, organization_id), subject):
        raise model.LastAdmin


def lock_as_admin(tx: Connection, principal: Principal | None, organization_id: UUID) -> model.Organization:
    """The organization, locked. The caller's role is read again behind the lock: who waited may have lost it."""
    if principal:
        see_organization(principal, organization_id)
    organization = lock_organization(tx, organization_id)
    if principal:
        recorded = store.standing(tx, organization_id, organization.provider, principal.id)
        if principal.kind is not Kind.USER or not model.may_change_members(principal.role, recorded):
            raise model.GrantTooWide("Only an admin of the organization may do this.")
    return organization


def lock_organization(tx: Connection, organization_id: UUID) -> model.Organization:
    found = organization_store.lock(tx, organization_id)
    if found is None:
        raise model.NotFound
    return found


def _found(member: model.Member | None) -> model.Member:
    if member is None:
        raise model.NotFound
    return member
