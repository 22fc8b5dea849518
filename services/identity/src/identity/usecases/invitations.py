"""Invitations: an admin names a user and a role, the user becomes a member by the code.

Everything about an organization's invitations is done behind the lock on the organization, as with its members, so
that a code is used once and never together with its revocation, and the inviter's role does not change meanwhile.
"""

import secrets
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import Connection

from chassis import db, keys, tenancy
from chassis.principals import Principal
from identity import model
from identity.audit import Change
from identity.store import invitations as store
from identity.store import organizations, people
from identity.usecases.deps import Deps, see_organization
from identity.usecases.passwords import code_for, new_code
from identity.usecases.people import enter_member, lock_as_admin, lock_organization


def create_invitation(
    deps: Deps, principal: Principal, organization_id: UUID, subject: str, role: str
) -> tuple[model.Invitation, str, str | None]:
    """A new invitation, its code, and another code to set a password with for whoever is new here; both shown once.

    One that the user has already is replaced.
    """
    code = f"tip_invitation_{secrets.token_urlsafe(32)}"  # hidden from logs by how it begins
    subject = deps.provider.subject(subject)
    values = {"subject": subject, "role": role, "invited_by": principal.id, "code_digest": keys.digest(code)}
    with deps.outbox.begin() as tx:
        organization = lock_as_admin(tx, principal, organization_id)
        if people.member(tx, organization_id, subject):
            raise model.MemberExists
        store.remove_expired(tx, organization_id)
        if replaced := store.remove_of(tx, organization_id, subject):
            _record(deps, tx, principal, "deleted", replaced)
        made = store.add(tx, uuid4(), organization_id, deps.limits.invitation_lifetime, values)
        model.check_limit(store.count(tx, organization_id), deps.limits.invitations)
        _record(deps, tx, principal, "created", made)
        one_time_code = _first_sign_in(deps, tx, organization, subject)
    return made, code, one_time_code


def _first_sign_in(deps: Deps, tx: Connection, organization: model.Organization, subject: str) -> str | None:
    """A code to set a password with, for somebody whom nobody knew before. To anybody else's it would be a way in.

    For them it is a code that opens nothing: an admin must not learn who is known to other organizations.
    """
    new_id = uuid4()
    if deps.provider.vouches:
        return None
    is_new = people.ensure_user(tx, new_id, organization.provider, subject).id == new_id
    return code_for(tx, new_id, deps.limits.invitation_lifetime) if is_new else new_code()


def get_invitation(deps: Deps, principal: Principal, organization_id: UUID, invitation_id: UUID) -> model.Invitation:
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        return _found(store.find(tx, organization_id, invitation_id))


def list_invitations(
    deps: Deps, principal: Principal, organization_id: UUID, after: tuple[datetime, UUID] | None, limit: int
) -> list[model.Invitation]:
    see_organization(principal, organization_id)
    with db.reading(deps.engine) as tx:
        if organizations.find(tx, organization_id) is None:
            raise model.NotFound
        return store.page(tx, organization_id, after, limit)


def revoke_invitation(deps: Deps, principal: Principal, organization_id: UUID, invitation_id: UUID) -> None:
    with deps.outbox.begin() as tx:
        lock_as_admin(tx, principal, organization_id)
        revoked = _found(store.remove(tx, organization_id, invitation_id))
        _record(deps, tx, principal, "deleted", revoked)


def accept_invitation(deps: Deps, principal: Principal, code: str) -> model.Membership:
    """Make the caller a member, if the code is of an open invitation for them and whoever invited them still may."""
    with tenancy.serving_all(), deps.outbox.begin() as tx:
        organization, invitation = _lock_invitation(tx, keys.digest(code))
        if not _is_for(invitation, principal, organization) or not _may_still_invite(tx, organization, invitation):
            raise _unknown_code()
        if people.member(tx, organization.id, principal.id):
            raise model.MemberExists
        store.remove(tx, organization.id, invitation.id)
        _record(deps, tx, principal, "accepted", invitation)
        enter_member(deps, tx, principal, organization, principal.id, invitation.role)
    return model.Membership(organization.id, organization.external_id, organization.name, invitation.role)


def _lock_invitation(tx: Connection, digest: bytes) -> tuple[model.Organization, model.Invitation]:
    """Read again behind the lock: while this one waited, it may have been accepted or revoked."""
    found = store.find_by_digest(tx, digest)
    organization = lock_organization(tx, found.organization_id) if found else None
    invitation = store.find_by_digest(tx, digest)
    if organization is None or invitation is None:
        raise _unknown_code()
    return organization, invitation


def _is_for(invitation: model.Invitation, principal: Principal, organization: model.Organization) -> bool:
    known_as = (principal.provider, principal.id)
    return known_as == (organization.provider, invitation.subject) and not organization.disabled


def _may_still_invite(tx: Connection, organization: model.Organization, invitation: model.Invitation) -> bool:
    """The role is given now, so it must be the inviter's to give now.

    Nobody shows the provider's claim of an absent inviter: where nothing is recorded, the one of then counts.
    """
    inviter = people.standing(tx, organization.id, organization.provider, invitation.invited_by)
    return model.may_change_members(model.ADMIN, inviter)


def _record(deps: Deps, tx: Connection, principal: Principal, what: str, invitation: model.Invitation) -> None:
    """By the invited user's subject, so that the audit log has one name for all that concerns them."""
    states = (None, invitation) if what == "created" else (invitation, None)
    change = Change(f"invitation.{what}", invitation.organization_id, invitation.subject, *states)
    deps.record_change(tx, principal, change, invitation_id=invitation.id)


def _unknown_code() -> model.NotFound:
    """One answer for all, so that a code tells nothing to whom it was not given."""
    return model.NotFound("No open invitation of yours has this code. Ask an admin of the organization for a new one.")


def _found(invitation: model.Invitation | None) -> model.Invitation:
    if invitation is None:
        raise model.NotFound
    return invitation
