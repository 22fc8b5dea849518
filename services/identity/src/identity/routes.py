"""identity over HTTP."""

from typing import cast

from flask import Blueprint, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from chassis import keys
from chassis.access import anyone
from chassis.openapi import describe
from chassis.ratelimit import RateLimit
from identity import model, schemas, usecases

bp = Blueprint("identity", __name__)

STATUSES: dict[type[Exception], int] = {
    model.UnknownKey: 401,
}


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


@bp.post("/api/v1/auth/api-key/validate")
@anyone
@describe(
    "Validate an API key",
    body=schemas.ValidateApiKeyRequest,
    answers={200: schemas.ApiKeyValidation},
    errors=(401, 413, 415, 422),
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
