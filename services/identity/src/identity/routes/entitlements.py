"""What an organization is entitled to; operators only."""

from uuid import UUID

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import service_account
from chassis.web import created
from identity import schemas, usecases
from identity.routes.common import PAGE_QUERY, caller, deps, page

bp = Blueprint("entitlements", __name__)
WRITE = "entitlement:write"


@bp.get("/v1/organizations/<uuid:organization_id>/entitlements")
@allow(service_account(WRITE, organization=False))
@describe(
    "List an organization's entitlements", answers={200: schemas.EntitlementPage}, errors=(404,), query=PAGE_QUERY
)
def list_entitlements(organization_id: UUID) -> ResponseReturnValue:
    return page(
        ("entitlements", str(organization_id)),
        lambda after, limit: usecases.list_entitlements(deps(), organization_id, after, limit),
        lambda entitlement: (entitlement.created_at, entitlement.name),
        schemas.Entitlement,
        to_id=str,
    )


@bp.get("/v1/organizations/<uuid:organization_id>/entitlements/<name>")
@allow(service_account(WRITE, organization=False))
@describe("One entitlement", answers={200: schemas.Entitlement}, errors=(404,))
def get_entitlement(organization_id: UUID, name: str) -> ResponseReturnValue:
    return jsonify(schemas.Entitlement().dump(usecases.get_entitlement(deps(), organization_id, name)))


@bp.put("/v1/organizations/<uuid:organization_id>/entitlements/<name>")
@allow(service_account(WRITE, organization=False))
@describe(
    "Entitle an organization, for ever or until a date",
    body=schemas.EntitlementRequest,
    answers={200: schemas.Entitlement, 201: schemas.Entitlement},
    errors=(404, 413, 415, 422),
)
def put_entitlement(organization_id: UUID, name: str) -> ResponseReturnValue:
    body = schemas.EntitlementRequest().load(request.get_json())
    held, is_new = usecases.put_entitlement(deps(), organization_id, name, body["expires_at"], caller())
    shown = schemas.Entitlement().dump(held)
    if is_new:
        return created(shown, ".get_entitlement", organization_id=organization_id, name=name)
    return jsonify(shown)


@bp.delete("/v1/organizations/<uuid:organization_id>/entitlements/<name>")
@allow(service_account(WRITE, organization=False))
@describe("End an entitlement", answers={204: None}, errors=(404,))
def remove_entitlement(organization_id: UUID, name: str) -> ResponseReturnValue:
    usecases.remove_entitlement(deps(), organization_id, name, caller())
    return "", 204
