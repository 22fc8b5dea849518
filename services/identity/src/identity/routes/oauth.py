"""The authorization server's endpoints of RFC 6749, 7009 and 8628, but for the token itself, which is in `tokens`."""

import re
from typing import Any, cast

from authlib.oauth2 import OAuth2Error
from flask import Blueprint, Response, current_app, request
from flask.typing import ResponseReturnValue

from chassis.access import anyone
from chassis.openapi import describe
from chassis.openapi_types import json_object
from chassis.problems import Problem
from chassis.ratelimit import RateLimit
from identity import model, model_login, schemas
from identity.routes import browser, login
from identity.routes.common import deps
from identity.routes.oauth_server import SERVER, Client, Consent, Issuer

bp = Blueprint("oauth", __name__)
FORM = "application/x-www-form-urlencoded"
_TEXT = {"type": "string"}
_REQUIRED = ("response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method")
QUERY: dict[str, dict[str, Any]] = {
    **{name: {**_TEXT, "required": True} for name in _REQUIRED},
    "state": _TEXT,
    "scope": _TEXT,
}
_PRINTABLE = re.compile(r"[ -~]{0,2048}", re.ASCII)
_QUOTED = re.compile(r"[\"\\]")  # what RFC 6749 allows in no description of an error, where Authlib repeats a value
_DEVICE = json_object(
    {
        "device_code": _TEXT,
        "user_code": _TEXT,
        "verification_uri": _TEXT,
        "verification_uri_complete": _TEXT,
        "expires_in": {"type": "integer"},
        "interval": {"type": "integer"},
    }
)
_REFUSALS: dict[int, Any] = {400: schemas.TokenRefusal, 401: schemas.TokenRefusal}


@bp.before_request
def refuse_elsewhere() -> None:
    login.refuse_elsewhere()


@login.bp.get("/oauth/authorize")
@anyone
@describe(
    "Where a client sends its user to sign in and to consent (authorization code with PKCE)",
    answers={200: login.HTML, 302: None, 400: login.HTML, 403: login.HTML, 429: login.HTML},
    errors=(404,),
    query=QUERY,
    codes=("login_elsewhere",),
)
def ask_for_consent() -> ResponseReturnValue:
    grant = _consent_grant()
    session = browser.signed_in()
    if session is None:
        return login.ask_to_sign_in(request.full_path)
    client = cast("Client", grant.client).registered
    return login.consent_page(session, client, action=request.full_path, leads_to=grant.redirect_uri)


@login.bp.post("/oauth/authorize")
@anyone
@describe(
    "The decision of the person, from that page",
    body=schemas.ConsentRequest,
    form=True,
    answers={200: login.HTML, 303: None, 400: login.HTML, 403: login.HTML, 429: login.HTML},
    errors=(404, 413),
    query=QUERY,
    codes=("login_elsewhere",),
)
def decide() -> ResponseReturnValue:
    grant = _consent_grant()
    browser.check_form()
    session = browser.signed_in()
    if session is None:
        return login.ask_to_sign_in(request.full_path)
    allowed = browser.field("decision") == "allow"
    user = Consent(session, login.chosen_organization()) if allowed else None
    response: Response = SERVER.create_authorization_response(grant_user=user, grant=grant)
    response.status_code = 303  # RFC 9700 §4.12: the form is not sent on
    return response


@bp.post("/oauth/device_authorization")
@anyone
@describe(
    "A code for a device without a browser (RFC 8628)",
    body=schemas.DeviceRequest,
    form=True,
    answers={200: _DEVICE, **_REFUSALS},
    errors=(404, 413),
    codes=("login_elsewhere",),
)
def begin_device() -> ResponseReturnValue:
    check_form_of_client()
    return cast("Response", SERVER.create_endpoint_response("device_authorization"))


@bp.post("/oauth/revoke")
@anyone
@describe(
    "Revoke a refresh token, and all that came of the same consent (RFC 7009)",
    body=schemas.RevocationRequest,
    form=True,
    answers={200: json_object({}), **_REFUSALS},
    errors=(404, 413),
    codes=("login_elsewhere",),
)
def revoke() -> ResponseReturnValue:
    check_form_of_client()
    return cast("Response", SERVER.create_endpoint_response("revocation"))


@login.bp.errorhandler(OAuth2Error)
def show_error(error: OAuth2Error) -> ResponseReturnValue:
    """Back to the client if it is known where that is; else to the person, who must not be sent anywhere."""
    if not error.redirect_uri:
        detail = error.description or "The client's request is not complete."
        return cast("Response", login.show_problem(Problem(400, "invalid_request", detail)))
    response: Response = SERVER.handle_error_response(None, error)
    Issuer().add_issuer_parameter(SERVER, response)
    return response


@bp.app_errorhandler(OAuth2Error)
def answer_error(error: OAuth2Error) -> ResponseReturnValue:
    """What Authlib refuses before it looks at the grant."""
    return cast("Response", SERVER.handle_error_response(None, error))


def check_form_of_client() -> None:
    """Of one address so much is taken, of one field one value, and no value that is nobody's."""
    cast("RateLimit", current_app.extensions["token_limit"]).count(f"address:{request.remote_addr}")
    if request.mimetype != FORM:
        raise model.TokenRefused("invalid_request", f"Send a form, Content-Type: {FORM}.")
    for values in request.form.listvalues():
        if len(values) > 1 or not _PRINTABLE.fullmatch(values[0]):
            raise model.TokenRefused("invalid_request", "A parameter is given twice, too long or not printable ASCII.")


def grant_by_login() -> ResponseReturnValue:
    """Tokens for a code, a device code or a refresh token."""
    if deps().provider.vouches:
        raise model.TokenRefused("unsupported_grant_type", str(model_login.LoginElsewhere.__doc__))
    check_form_of_client()
    return cast("Response", SERVER.create_token_response())


def _consent_grant() -> Any:
    """Authlib takes its parameters from the query and from the form alike."""
    for name in QUERY:
        for value in request.values.getlist(name):
            if not _PRINTABLE.fullmatch(value) or (name != "state" and _QUOTED.search(value)):
                raise Problem(400, "invalid_request", f"The client sent a {name} that cannot be one.")
    return SERVER.get_consent_grant(end_user=None)
