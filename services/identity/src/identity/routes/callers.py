"""What a credential may do."""

from typing import cast

from flask import Blueprint, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import keys
from chassis.access import allow, anyone
from chassis.openapi import describe
from chassis.principals import Bounds, Kind, Principal, api_key, service_account, user
from chassis.ratelimit import RateLimit
from identity import schemas, usecases
from identity.routes.common import caller, deps

bp = Blueprint("callers", __name__)


@bp.post("/api/v1/auth/api-key/validate")
@anyone
@describe(
    "Validate an API key",
    body=schemas.ValidateApiKeyRequest,
    answers={200: schemas.ApiKeyValidation},
    errors=(401, 413, 415, 422),
    codes=("unknown_key",),
    reads_only=True,
)
def validate_api_key() -> ResponseReturnValue:
    body = schemas.ValidateApiKeyRequest().load(request.get_json())
    _limit_guessing(body["api_key"])
    return jsonify(schemas.ApiKeyValidation().dump(usecases.validate_key(deps(), body["api_key"])))


def _limit_guessing(key: str) -> None:
    limit = cast("RateLimit", current_app.extensions["validate_limit"])
    limit.count(f"address:{request.remote_addr}")
    if keys.is_well_formed(key):
        limit.count(f"prefix:{keys.prefix(key)}")


@bp.get("/v1/auth/self")
@allow(user(organization=False), api_key(), service_account(organization=False))
@describe("What this credential may do", answers={200: schemas.Self})
def show_self() -> ResponseReturnValue:
    return jsonify(schemas.Self().dump(_described(caller())))


def _described(principal: Principal) -> dict[str, object]:
    grants = sorted(principal.grants)
    return {
        "principal_type": principal.kind.value,
        "id": principal.id,
        "organization_id": principal.organization_id,
        "role": principal.role.value if principal.role else None,
        "environment": principal.environment,
        "scopes": grants if principal.kind is Kind.SERVICE_ACCOUNT else [],
        "permissions": grants if principal.kind is Kind.API_KEY else [],
        "entitlements": sorted(principal.entitlements),
        "bounds": _bounds(principal.bounds),
    }


def _bounds(bounds: Bounds) -> dict[str, object] | None:
    """Lists in order, whatever order they were given in."""
    if bounds == Bounds():
        return None
    return {
        "accounts": None if bounds.accounts is None else sorted(bounds.accounts),
        "symbols": None if bounds.symbols is None else sorted(bounds.symbols),
        "max_notional_per_day": bounds.max_notional_per_day,
    }
