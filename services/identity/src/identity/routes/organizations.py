"""Organizations. Operators (service accounts) run them; users read their own."""

from uuid import UUID

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import ANY_ROLE, service_account, user
from chassis.web import created
from identity import schemas, usecases
from identity.routes.common import PAGE_QUERY, caller, deps, name_in_path, page

bp = Blueprint("organizations", __name__)
READ, WRITE = "organization:read", "organization:write"


@bp.get("/v1/organizations/by-provider/<provider>/<path:provider_id>")
@allow(user(organization=False), service_account(organization=False))
@describe(
    "An organization by its identity provider's id",
    answers={200: schemas.Organization},
    errors=(404,),
    note="`provider_id` is what the organization's `external_id` says: the specification has both words for it.",
)
def get_organization_by_provider(provider: str, provider_id: str) -> ResponseReturnValue:
    found = usecases.get_organization_by_provider(deps(), caller(), provider, name_in_path(provider_id))
    return jsonify(schemas.Organization().dump(found))


@bp.post("/v1/organizations")
@allow(service_account(WRITE, organization=False))
@describe(
    "Create an organization",
    body=schemas.OrganizationRequest,
    answers={201: schemas.Organization},
    errors=(409, 413, 415, 422),
    codes=("organization_exists",),
)
def create_organization() -> ResponseReturnValue:
    body = schemas.OrganizationRequest().load(request.get_json())
    made = usecases.create_organization(deps(), deps().provider.name, body["external_id"], body["name"], caller())
    return created(schemas.Organization().dump(made), ".get_organization", organization_id=made.id)


@bp.get("/v1/organizations")
@allow(service_account(READ, organization=False))
@describe("List organizations", answers={200: schemas.OrganizationPage}, query=PAGE_QUERY)
def list_organizations() -> ResponseReturnValue:
    return page(
        ("organizations",),
        lambda after, limit: usecases.list_organizations(deps(), after, limit),
        lambda organization: (organization.created_at, organization.id),
        schemas.Organization,
    )


@bp.get("/v1/organizations/<uuid:organization_id>")
@allow(user(*ANY_ROLE), service_account(READ, organization=False))
@describe("An organization", answers={200: schemas.Organization}, errors=(404,))
def get_organization(organization_id: UUID) -> ResponseReturnValue:
    found = usecases.get_organization(deps(), caller(), organization_id)
    return jsonify(schemas.Organization().dump(found))


@bp.patch("/v1/organizations/<uuid:organization_id>")
@allow(service_account(WRITE, organization=False))
@describe(
    "Rename, disable or enable an organization, or require a second factor of its people",
    body=schemas.OrganizationChanges,
    answers={200: schemas.Organization},
    errors=(404, 413, 415, 422),
)
def change_organization(organization_id: UUID) -> ResponseReturnValue:
    changes = schemas.OrganizationChanges().load(request.get_json())
    changed = usecases.change_organization(deps(), organization_id, changes, caller())
    return jsonify(schemas.Organization().dump(changed))
