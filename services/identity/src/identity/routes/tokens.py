"""POST /oauth/token: the client credentials grant of RFC 6749, with its errors; the grants of people are `oauth`'s."""

import base64
import binascii
from typing import cast
from urllib.parse import unquote_plus

from flask import Blueprint, current_app, jsonify, request
from flask.typing import ResponseReturnValue

from chassis.access import anyone
from chassis.openapi import describe
from chassis.ratelimit import RateLimit
from identity import model, schemas, usecases
from identity.routes.common import deps
from identity.routes.oauth import FORM, grant_by_login
from identity.routes.oauth_server import LOGIN_GRANTS

bp = Blueprint("tokens", __name__)

# RFC 6749 §5.2: nothing about a token, or about why there is none, is to be kept on the way.
UNCACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_LONGEST = 255


@bp.post("/oauth/token")
@anyone
@describe(
    "A token for a service account, which proves itself by HTTP Basic or in the form, or for a person who signed in",
    body=schemas.TokenRequest,
    form=True,
    answers={200: schemas.TokenAnswer, 400: schemas.TokenRefusal, 401: schemas.TokenRefusal},
    errors=(413,),
)
def grant_token() -> ResponseReturnValue:
    if request.form.get("grant_type") in LOGIN_GRANTS:
        return grant_by_login()
    client_id, secret = _client()
    _limit_guessing(client_id)
    grant_type = _field("grant_type")
    if grant_type is None:
        raise model.TokenRefused("invalid_request", "grant_type is missing.")
    if grant_type != "client_credentials":
        raise model.TokenRefused("unsupported_grant_type", "This grant type is not one of ours.")
    token, scopes = usecases.grant_token(deps(), client_id, secret, _field("scope"))
    lifetime = deps().signer.lifetime_s
    kind = "Bearer"
    answer = {"access_token": token, "token_type": kind, "expires_in": lifetime, "scope": " ".join(scopes)}
    return jsonify(answer), 200, UNCACHED


@bp.app_errorhandler(model.TokenRefused)
def refuse_token(refusal: model.TokenRefused) -> ResponseReturnValue:
    body = {"error": refusal.error, "error_description": refusal.description}
    if refusal.error == "invalid_client":
        return jsonify(body), 401, UNCACHED | {"WWW-Authenticate": 'Basic realm="tip"'}
    return jsonify(body), 400, UNCACHED


def _client() -> tuple[str, str]:
    """The client's id and secret, given in one way and not in two."""
    if request.mimetype != FORM:
        raise model.TokenRefused("invalid_request", f"Send a form, Content-Type: {FORM}.")
    in_body = _field("client_id"), _field("client_secret")
    header = request.headers.get("Authorization")
    if header is None and None not in in_body:
        return cast("tuple[str, str]", in_body)
    if header is not None and in_body[1] is None:
        presented = _from_basic(header)
        if in_body[0] in (None, presented[0]):
            return presented
    if header is None and in_body[1] is None:
        raise model.TokenRefused("invalid_client", "The client must prove itself.")
    raise model.TokenRefused("invalid_request", "Prove the client by HTTP Basic or in the body, not by both.")


def _from_basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.partition(" ")
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        decoded = ""
    client_id, colon, secret = decoded.partition(":")
    if scheme.lower() != "basic" or not colon:
        raise model.TokenRefused("invalid_client", "Send HTTP Basic.")
    return _checked(unquote_plus(client_id)), _checked(unquote_plus(secret))


def _field(name: str) -> str | None:
    given = request.form.getlist(name)
    if len(given) > 1:
        raise model.TokenRefused("invalid_request", "A parameter is given twice.")
    return _checked(given[0]) if given and given[0] else None


def _checked(value: str) -> str:
    """RFC 6749 allows printable ASCII; what else arrives is nobody's id, secret or scope."""
    if len(value) > _LONGEST or not value.isascii() or not value.isprintable():
        raise model.TokenRefused("invalid_request", "A parameter is too long or not printable ASCII.")
    return value


def _limit_guessing(client_id: str) -> None:
    limit = cast("RateLimit", current_app.extensions["token_limit"])
    limit.count(f"address:{request.remote_addr}")
    limit.count(f"client:{client_id}")
