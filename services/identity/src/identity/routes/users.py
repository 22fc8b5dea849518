"""The user who calls."""

from uuid import UUID

from flask import Blueprint, jsonify
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, user
from chassis.problems import plain_text_errors
from identity import schemas, usecases
from identity.routes.common import caller, deps

bp = Blueprint("users", __name__)


@bp.get("/v1/users/me")
@allow(user(organization=False))
@describe("The current user", answers={200: schemas.CurrentUser})
def show_current_user() -> ResponseReturnValue:
    principal = caller()
    shown = {
        "id": principal.user_id,
        "provider": principal.provider,
        "subject": principal.id,
        "organization_id": principal.organization_id,
        "role": principal.role.value if principal.role else None,
        "memberships": usecases.list_memberships(deps(), principal),
    }
    return jsonify(schemas.CurrentUser().dump(shown))


@bp.delete("/v1/users/me/memberships/<uuid:organization_id>")
@allow(user(organization=False))
@describe("Leave an organization", answers={204: None}, errors=(404, 409), codes=("last_admin",))
def leave_organization(organization_id: UUID) -> ResponseReturnValue:
    usecases.leave_organization(deps(), caller(), organization_id)
    return "", 204


@bp.delete("/v1/users/me")
@plain_text_errors
@allow(user(*ANY_ROLE), unsuitable=401)
@describe("Delete the current user, for ever", answers={204: None})
def delete_current_user() -> ResponseReturnValue:
    usecases.delete_user(deps(), caller())
    return "", 204
