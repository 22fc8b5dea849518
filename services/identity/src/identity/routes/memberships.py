"""Who belongs to an organization. A member is named by the provider's id of the user, the token's `sub`.

Operators read members; only an admin of the organization changes them, so that no scope is worth a role.
"""

from uuid import UUID

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import Role, service_account, user
from chassis.web import created
from identity import schemas, usecases
from identity.routes.common import PAGE_QUERY, caller, deps, name_in_path, page
from identity.routes.organizations import READ

bp = Blueprint("memberships", __name__)


@bp.get("/v1/organizations/<uuid:organization_id>/memberships")
@allow(user(Role.ADMIN), service_account(READ, organization=False))
@describe("List the members of an organization", answers={200: schemas.MemberPage}, errors=(404,), query=PAGE_QUERY)
def list_members(organization_id: UUID) -> ResponseReturnValue:
    return page(
        ("memberships", str(organization_id)),
        lambda after, limit: usecases.list_members(deps(), caller(), organization_id, after, limit),
        lambda member: (member.created_at, member.user_id),
        schemas.Member,
    )


@bp.get("/v1/organizations/<uuid:organization_id>/memberships/<path:subject>")
@allow(user(Role.ADMIN), service_account(READ, organization=False))
@describe("One member of an organization", answers={200: schemas.Member}, errors=(404,))
def get_member(organization_id: UUID, subject: str) -> ResponseReturnValue:
    member = usecases.get_member(deps(), caller(), organization_id, name_in_path(subject))
    return jsonify(schemas.Member().dump(member))


@bp.put("/v1/organizations/<uuid:organization_id>/memberships/<path:subject>")
@allow(user(Role.ADMIN))
@describe(
    "Make somebody a member, or change their role",
    body=schemas.MemberRequest,
    answers={200: schemas.Member, 201: schemas.Member},
    errors=(404, 409, 413, 415, 422),
    codes=("last_admin", "login_exists", "limit_reached", "grant_too_wide"),
)
def put_member(organization_id: UUID, subject: str) -> ResponseReturnValue:
    role = schemas.MemberRequest().load(request.get_json())["role"]
    member, is_new = usecases.change_member(deps(), caller(), organization_id, name_in_path(subject), role)
    shown = schemas.Member().dump(member)
    if is_new:
        return created(shown, ".get_member", organization_id=organization_id, subject=subject)
    return jsonify(shown)


@bp.delete("/v1/organizations/<uuid:organization_id>/memberships/<path:subject>")
@allow(user(Role.ADMIN))
@describe(
    "Take somebody's membership away",
    answers={204: None},
    errors=(404, 409),
    codes=("last_admin", "grant_too_wide"),
)
def remove_member(organization_id: UUID, subject: str) -> ResponseReturnValue:
    usecases.remove_member(deps(), caller(), organization_id, name_in_path(subject))
    return "", 204
