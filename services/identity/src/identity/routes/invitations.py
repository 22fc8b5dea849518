"""Invitations: made and revoked by admins of the organization, accepted by the user they are for."""

from typing import cast
from uuid import UUID

from flask import Blueprint, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import Role, service_account, user
from chassis.ratelimit import RateLimit
from chassis.web import created
from identity import schemas, usecases
from identity import schemas_invitations as invitations
from identity.routes.common import PAGE_QUERY, caller, deps, page
from identity.routes.organizations import READ

bp = Blueprint("invitations", __name__)


@bp.post("/v1/organizations/<uuid:organization_id>/invitations")
@allow(user(Role.ADMIN))
@describe(
    "Invite somebody; the answer is the only place its codes are ever shown",
    body=invitations.InvitationRequest,
    answers={201: invitations.CreatedInvitation},
    errors=(404, 409, 413, 415, 422),
    note="`subject` is the provider's id of the user, with our own users the e-mail address. An open invitation of the "
    "same user is replaced. Give the user `code`, and `one_time_code` if there is one: by it somebody who is new here "
    "sets a password. They accept at `/login/invitation`, or with a token at `/v1/invitations/accept`.",
    codes=("member_exists", "limit_reached", "grant_too_wide"),
)
def create_invitation(organization_id: UUID) -> ResponseReturnValue:
    body = invitations.InvitationRequest().load(request.get_json())
    subject, role = body["subject"], body["role"]
    made, code, one_time_code = usecases.create_invitation(deps(), caller(), organization_id, subject, role)
    shown = invitations.Invitation().dump(made) | {"code": code, "one_time_code": one_time_code}
    return created(shown, ".get_invitation", organization_id=organization_id, invitation_id=made.id)


@bp.get("/v1/organizations/<uuid:organization_id>/invitations")
@allow(user(Role.ADMIN), service_account(READ, organization=False))
@describe(
    "List the open invitations of an organization",
    answers={200: invitations.InvitationPage},
    errors=(404,),
    query=PAGE_QUERY,
)
def list_invitations(organization_id: UUID) -> ResponseReturnValue:
    return page(
        ("invitations", str(organization_id)),
        lambda after, limit: usecases.list_invitations(deps(), caller(), organization_id, after, limit),
        lambda invitation: (invitation.created_at, invitation.id),
        invitations.Invitation,
    )


@bp.get("/v1/organizations/<uuid:organization_id>/invitations/<uuid:invitation_id>")
@allow(user(Role.ADMIN), service_account(READ, organization=False))
@describe("An open invitation, without its code", answers={200: invitations.Invitation}, errors=(404,))
def get_invitation(organization_id: UUID, invitation_id: UUID) -> ResponseReturnValue:
    found = usecases.get_invitation(deps(), caller(), organization_id, invitation_id)
    return jsonify(invitations.Invitation().dump(found))


@bp.delete("/v1/organizations/<uuid:organization_id>/invitations/<uuid:invitation_id>")
@allow(user(Role.ADMIN))
@describe("Revoke an invitation", answers={204: None}, errors=(404,), codes=("grant_too_wide",))
def revoke_invitation(organization_id: UUID, invitation_id: UUID) -> ResponseReturnValue:
    usecases.revoke_invitation(deps(), caller(), organization_id, invitation_id)
    return "", 204


@bp.post("/v1/invitations/accept")
@allow(user(organization=False))
@describe(
    "Become a member by the code of an invitation",
    body=invitations.AcceptInvitationRequest,
    answers={200: schemas.Membership},
    errors=(404, 409, 413, 415, 422),
    codes=("member_exists", "limit_reached", "user_deleted"),
)
def accept_invitation() -> ResponseReturnValue:
    body = invitations.AcceptInvitationRequest().load(request.get_json())
    _limit_guessing()
    return jsonify(schemas.Membership().dump(usecases.accept_invitation(deps(), caller(), body["code"])))


def _limit_guessing() -> None:
    limit = cast("RateLimit", current_app.extensions["invitation_limit"])
    limit.count(f"address:{request.remote_addr}")
    limit.count(f"user:{caller().id}")
