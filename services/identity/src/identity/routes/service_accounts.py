"""Service accounts; operators only."""

from flask import Blueprint, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import allow
from chassis.openapi import describe
from chassis.principals import service_account
from chassis.web import created
from identity import schemas, usecases
from identity.routes.common import PAGE_QUERY, caller, deps, name_in_path, page

bp = Blueprint("service_accounts", __name__)
OPERATOR = service_account("organization:write", organization=False)


@bp.post("/v1/service-accounts")
@allow(OPERATOR)
@describe(
    "Create a service account; the answer is the only place its secret is ever shown",
    body=schemas.ServiceAccountRequest,
    answers={201: schemas.CreatedServiceAccount},
    errors=(409, 413, 415, 422),
    codes=("limit_reached", "grant_too_wide"),
)
def create_service_account() -> ResponseReturnValue:
    body = schemas.ServiceAccountRequest().load(request.get_json())
    account, secret = usecases.create_service_account(deps(), body["name"], body["scopes"], caller())
    shown = schemas.ServiceAccount().dump(account) | {"client_secret": secret}
    return created(shown, ".get_service_account", client_id=account.client_id)


@bp.get("/v1/service-accounts")
@allow(OPERATOR)
@describe("List service accounts", answers={200: schemas.ServiceAccountPage}, query=PAGE_QUERY)
def list_service_accounts() -> ResponseReturnValue:
    return page(
        ("service-accounts",),
        lambda after, limit: usecases.list_service_accounts(deps(), after, limit),
        lambda account: (account.created_at, account.client_id),
        schemas.ServiceAccount,
        to_id=str,
    )


@bp.get("/v1/service-accounts/<client_id>")
@allow(OPERATOR)
@describe("A service account, without its secret", answers={200: schemas.ServiceAccount}, errors=(404,))
def get_service_account(client_id: str) -> ResponseReturnValue:
    found = usecases.get_service_account(deps(), name_in_path(client_id))
    return jsonify(schemas.ServiceAccount().dump(found))


@bp.patch("/v1/service-accounts/<client_id>")
@allow(OPERATOR)
@describe(
    "Rename, disable, enable a service account or change its scopes",
    body=schemas.ServiceAccountChanges,
    answers={200: schemas.ServiceAccount},
    errors=(404, 413, 415, 422),
    codes=("grant_too_wide",),
)
def change_service_account(client_id: str) -> ResponseReturnValue:
    changes = schemas.ServiceAccountChanges().load(request.get_json())
    changed = usecases.change_service_account(deps(), caller(), name_in_path(client_id), changes)
    return jsonify(schemas.ServiceAccount().dump(changed))


@bp.post("/v1/service-accounts/<client_id>/secret")
@allow(OPERATOR)
@describe(
    "Replace the secret; the answer is the only place the new one is ever shown",
    answers={200: schemas.CreatedServiceAccount},
    errors=(404,),
    codes=("grant_too_wide",),
)
def rotate_secret(client_id: str) -> ResponseReturnValue:
    account, secret = usecases.rotate_secret(deps(), caller(), name_in_path(client_id))
    return jsonify(schemas.ServiceAccount().dump(account) | {"client_secret": secret})


@bp.delete("/v1/service-accounts/<client_id>")
@allow(OPERATOR)
@describe("Delete a service account", answers={204: None}, errors=(404,))
def delete_service_account(client_id: str) -> ResponseReturnValue:
    usecases.delete_service_account(deps(), caller(), name_in_path(client_id))
    return "", 204
