"""API keys of the caller's organization."""

from uuid import UUID

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import Role, service_account, user
from chassis.web import created
from identity import schemas, usecases
from identity.routes.common import PAGE_QUERY, caller, deps, own_organization, page

bp = Blueprint("api_keys", __name__)
MANAGERS = (user(Role.ADMIN), service_account("api-key:write"))


@bp.post("/v1/api-keys")
@allow(*MANAGERS)
@describe(
    "Create an API key; the answer is the only place the key is ever shown",
    body=schemas.ApiKeyRequest,
    answers={201: schemas.CreatedApiKey},
    errors=(409, 413, 415, 422),
    codes=("limit_reached", "grant_too_wide"),
)
def create_key() -> ResponseReturnValue:
    new = schemas.ApiKeyRequest().load(request.get_json())
    record, key = usecases.create_key(deps(), own_organization(), new, caller())
    return created(schemas.ApiKey().dump(record) | {"key": key}, ".get_key", key_id=record.id)


@bp.get("/v1/api-keys")
@allow(*MANAGERS)
@describe("List the organization's API keys", answers={200: schemas.ApiKeyPage}, query=PAGE_QUERY)
def list_keys() -> ResponseReturnValue:
    organization_id = own_organization()
    return page(
        ("api-keys", str(organization_id)),
        lambda after, limit: usecases.list_keys(deps(), organization_id, after, limit),
        lambda key: (key.created_at, key.id),
        schemas.ApiKey,
    )


@bp.get("/v1/api-keys/<uuid:key_id>")
@allow(*MANAGERS)
@describe("An API key, without the key", answers={200: schemas.ApiKey}, errors=(404,))
def get_key(key_id: UUID) -> ResponseReturnValue:
    return jsonify(schemas.ApiKey().dump(usecases.get_key(deps(), own_organization(), key_id)))


@bp.patch("/v1/api-keys/<uuid:key_id>")
@allow(*MANAGERS)
@describe(
    "Rename, disable, enable, limit or extend an API key",
    body=schemas.ApiKeyChanges,
    answers={200: schemas.ApiKey},
    errors=(404, 413, 415, 422),
    codes=("grant_too_wide",),
)
def change_key(key_id: UUID) -> ResponseReturnValue:
    changes = schemas.ApiKeyChanges().load(request.get_json())
    return jsonify(schemas.ApiKey().dump(usecases.change_key(deps(), caller(), own_organization(), key_id, changes)))


@bp.delete("/v1/api-keys/<uuid:key_id>")
@allow(*MANAGERS)
@describe("Delete an API key", answers={204: None}, errors=(404,))
def delete_key(key_id: UUID) -> ResponseReturnValue:
    usecases.delete_key(deps(), caller(), own_organization(), key_id)
    return "", 204
