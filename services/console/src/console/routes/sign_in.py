"""Signing in and out, and what pages need besides: static files, the theme."""

from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue

from chassis.openapi import describe
from chassis.problems import Problem
from console import model, usecases
from console.routes import common
from console.routes.common import deps, go_to, page, with_cookie

bp = Blueprint("sign_in", __name__)
_TEXT = {"type": "string"}
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
_YEAR_S = 365 * 24 * 3600


@bp.get("/")
def show_root() -> ResponseReturnValue:
    return go_to(model.HOME)


@bp.get("/console/sign-in")
@describe("Go to sign in", answers={303: None}, query={"next": _TEXT})
def begin() -> ResponseReturnValue:
    goes_on_at = model.own_path(request.args.get("next", ""))
    if not common.is_at_home():
        return go_to(f"{common.origin()}/console/sign-in")
    cookie, address = usecases.begin_sign_in(deps(), goes_on_at)
    return with_cookie(go_to(address), common.SIGN_IN, cookie)


@bp.get("/console/callback")
@describe(
    "Come back from signing in",
    answers={303: None},
    query=dict.fromkeys(("code", "state", "iss", "error", "error_description", "session_state", "scope"), _TEXT),
)
def complete() -> ResponseReturnValue:
    returned = request.args
    if "error" in returned:
        return page("message.html", 403, title="Not signed in", text="You were not signed in.", sign_in=True)
    answer = usecases.Answer(returned.get("state", ""), returned.get("code", ""), returned.get("iss", ""))
    sign_in, before = common.cookie(common.SIGN_IN), common.cookie(common.SESSION)
    cookie, goes_on_at = usecases.complete_sign_in(deps(), sign_in, answer, before)
    response = with_cookie(go_to(goes_on_at), common.SESSION, cookie)
    return with_cookie(response, common.SIGN_IN, "")


@bp.post("/console/sign-out")
def sign_out() -> ResponseReturnValue:
    common.check_origin()
    usecases.sign_out(deps(), common.cookie(common.SESSION))
    return with_cookie(go_to("/console/signed-out"), common.SESSION, "")


@bp.get("/console/signed-out")
def show_signed_out() -> ResponseReturnValue:
    text, sign_out_url = "You are signed out of the console.", deps().providers.sign_out_url
    return page("message.html", title="Signed out", text=text, sign_in=True, sign_out_url=sign_out_url)


@bp.post("/console/theme")
def choose_theme() -> ResponseReturnValue:
    """Not a change of anything that matters to anybody else, so it is the one form that needs no session."""
    chosen = common.field("theme")
    response = go_to(model.own_path(common.field("next", 2000)))
    return with_cookie(response, common.THEME, chosen if chosen in common.THEMES else "", max_age=_YEAR_S)


@bp.get("/console/static/<version>/<name>")
def show_static(version: str, name: str) -> ResponseReturnValue:
    if version != common.VERSION or name not in common.STATIC:
        raise Problem(404)
    return Response(common.STATIC[name], 200, _FOR_EVER, content_type=_TYPES[name.rpartition(".")[2]])
