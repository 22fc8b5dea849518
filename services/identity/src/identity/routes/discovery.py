"""What somebody who wants to verify our tokens needs to know."""

from typing import Any

from flask import Blueprint, current_app, jsonify
from flask.typing import ResponseReturnValue

from chassis.access import anyone
from chassis.openapi import describe
from chassis.openapi_types import json_object
from chassis.tokens import ALGORITHMS
from identity import model, usecases
from identity.routes.common import deps
from identity.routes.oauth_server import LOGIN_GRANTS, PUBLIC

bp = Blueprint("discovery", __name__)

# No longer than a new key is published before it signs.
BRIEFLY_CACHED = {"Cache-Control": f"public, max-age={int(model.PUBLISH_BEFORE_SIGNING.total_seconds())}"}
_KEYS = {"type": "array", "items": {"type": "object"}, "description": "JWKs of RFC 7517, found by `kid`."}
_ADDRESS = {"type": "string", "format": "uri"}
_WORDS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_CONFIGURATION: dict[str, dict[str, Any]] = {
    "issuer": {"type": "string"},
    "jwks_uri": _ADDRESS,
    "token_endpoint": _ADDRESS,
    "grant_types_supported": _WORDS,
    "token_endpoint_auth_methods_supported": _WORDS,
    "scopes_supported": _WORDS,
    "response_types_supported": _WORDS,
    "subject_types_supported": _WORDS,
    "id_token_signing_alg_values_supported": _WORDS,
}


@bp.get("/.well-known/jwks.json")
@anyone
@describe("The public keys of our tokens", answers={200: json_object({"keys": _KEYS})})
def show_keys() -> ResponseReturnValue:
    return jsonify(keys=usecases.public_keys(deps())), 200, BRIEFLY_CACHED


@bp.get("/.well-known/openid-configuration")
@anyone
@describe("Where to get tokens and how to verify them", answers={200: json_object(_CONFIGURATION)})
def show_configuration() -> ResponseReturnValue:
    return jsonify(_configuration()), 200, BRIEFLY_CACHED


@bp.get("/.well-known/oauth-authorization-server")
@anyone
@describe("The same, where RFC 8414 has it", answers={200: json_object(_CONFIGURATION)})
def show_metadata() -> ResponseReturnValue:
    return jsonify(_configuration()), 200, BRIEFLY_CACHED


def _configuration() -> dict[str, Any]:
    base, local = current_app.extensions["public_url"], not deps().provider.vouches
    document: dict[str, Any] = {
        "issuer": deps().signer.issuer,
        "jwks_uri": f"{base}/.well-known/jwks.json",
        "token_endpoint": f"{base}/oauth/token",
        "grant_types_supported": ["client_credentials", *(LOGIN_GRANTS if local else ())],
        "token_endpoint_auth_methods_supported": [
            "client_secret_basic",
            "client_secret_post",
            *(PUBLIC if local else ()),
        ],
        "scopes_supported": list(model.SCOPES),
        "response_types_supported": ["code"] if local else [],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": list(ALGORITHMS[:1]),
    }
    return document | (_login(base) if local else {})


def _login(base: str) -> dict[str, Any]:
    """Where people sign in, if they do it here."""
    return {
        "authorization_endpoint": f"{base}/oauth/authorize",
        "device_authorization_endpoint": f"{base}/oauth/device_authorization",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "revocation_endpoint_auth_methods_supported": PUBLIC,
        "response_modes_supported": ["query"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
