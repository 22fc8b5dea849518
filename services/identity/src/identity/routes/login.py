"""The pages of the local provider: sign in, second factor, let a client or device act, sign out.

Those that no program calls are not in the document of the API.
"""

import re
from importlib.resources import files
from typing import cast
from uuid import UUID

import segno
from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from markupsafe import Markup

from chassis.access import anyone
from chassis.fields import Identifier
from chassis.openapi import describe
from chassis.principals import Kind, Principal
from chassis.problems import Problem
from chassis.tokens import is_name
from identity import model, model_login, usecases
from identity.routes import browser
from identity.routes.browser import check_form, field, go_to, limit_attempts, page
from identity.routes.common import deps
from identity.usecases import grants, login

bp = Blueprint("login", __name__)
HTML = {"text/html": {"schema": {"type": "string"}}}
HOME, INVITATION = "/login", "/login/invitation"
STYLE = (files("identity") / "templates" / "style.css").read_text()
_NEXT = re.compile(r"/(oauth/authorize|login/device|login/invitation)(\?[!-~]*)?", re.ASCII)
RETRY_AFTER_S = 5
_AGAIN = {"login.sign_in": "sign_in.html", "login.use_code": "code.html", "login.show_second_factor": "totp.html"}


@bp.before_request
def refuse_elsewhere() -> None:
    if deps().provider.vouches:
        raise model_login.LoginElsewhere


@bp.errorhandler(Problem)
def show_problem(problem: Problem) -> ResponseReturnValue:
    shown = page("message.html", problem.status, footer=False, title="That did not work", text=problem.detail)
    shown.headers.update(problem.headers)
    return shown


@bp.errorhandler(model_login.SignInBusy)
def show_busy(busy: Exception) -> ResponseReturnValue:
    wait = {"Retry-After": str(RETRY_AFTER_S)}
    return cast("Response", show_problem(Problem(503, "unavailable", str(type(busy).__doc__), headers=wait)))


@bp.errorhandler(model_login.SignInRefused)
@bp.errorhandler(model_login.WeakPassword)
def show_form_again(refusal: Exception) -> ResponseReturnValue:
    template = _AGAIN[request.endpoint or ""]
    return page(template, 403, next=next_page(), email=field("email"), refusal=type(refusal).__doc__)


@bp.errorhandler(model_login.NoMembership)
def show_no_membership(refusal: Exception) -> ResponseReturnValue:
    return page("invitation.html", 403, refusal=type(refusal).__doc__)


@bp.get("/login")
def show_home() -> ResponseReturnValue:
    session = browser.signed_in()
    if session is None:
        return ask_to_sign_in(HOME)
    return page("home.html", next=HOME, totp=login.has_totp(deps(), session))


@bp.post("/login")
def sign_in() -> ResponseReturnValue:
    check_form()
    if field("with") == "code":
        return page("code.html", next=next_page(), email=field("email"))
    subject = _subject()
    limit_attempts(subject)
    return go_to(next_page(), login.sign_in(deps(), subject, field("password")))


@bp.get("/login/code")
def ask_for_code() -> ResponseReturnValue:
    return page("code.html", next=HOME)


@bp.post("/login/code")
def use_code() -> ResponseReturnValue:
    check_form()
    subject = _subject()
    limit_attempts(subject)
    cookie = login.sign_in_with_code(deps(), subject, field("code"), field("password"))
    return go_to(next_page(), cookie)


@bp.post("/login/totp")
def show_second_factor() -> ResponseReturnValue:
    check_form()
    session = browser.session()
    if session is None:
        return ask_to_sign_in(next_page())
    limit_attempts(session.subject)
    return go_to(next_page(), login.show_totp(deps(), session, field("code")))


@bp.post("/login/totp/setup")
def set_up_second_factor() -> ResponseReturnValue:
    check_form()
    session = browser.signed_in()
    if session is None:
        return ask_to_sign_in(next_page())
    secret, address = login.offer_totp(deps(), session)
    groups = " ".join(re.findall(".{1,4}", secret))
    return page("totp_setup.html", next=next_page(), secret=groups, address=address, picture=_qr_code(address))


@bp.post("/login/sign-out")
def sign_out() -> ResponseReturnValue:
    check_form()
    session = browser.session()
    if session:
        login.sign_out(deps(), session, everywhere=field("everywhere") == "yes")
    return go_to("/login/signed-out", drop=True)


@bp.get("/login/signed-out")
def show_signed_out() -> ResponseReturnValue:
    return page("message.html", title="Signed out", text="You are signed out. You can close this page.")


@bp.get("/login/device")
@anyone
@describe(
    "The page where a person enters the code that a device shows",
    answers={200: HTML, 400: HTML, 403: HTML, 404: HTML, 429: HTML},
    query={"user_code": {"type": "string"}},
)
def ask_for_device() -> ResponseReturnValue:
    session, user_code = browser.signed_in(), request.args.get("user_code", "")[:32]
    if session is None:
        return ask_to_sign_in("/login/device" + (f"?user_code={_letters(user_code)}" if user_code else ""))
    if not user_code:
        return page("device.html")
    limit_attempts(session.subject)
    client = grants.find_device(deps(), user_code)
    if client is None:
        return page("device.html", 404, refusal="No device waits for this code. It may have run out.")
    return consent_page(session, client, action="/login/device", user_code=user_code)


@bp.post("/login/device")
def decide_device() -> ResponseReturnValue:
    check_form()
    session = browser.signed_in()
    if session is None:
        return ask_to_sign_in("/login/device")
    limit_attempts(session.subject)
    allowed, user_code = field("decision") == "allow", field("user_code", 32)
    if not grants.decide_device(deps(), session, user_code, chosen_organization(), allowed=allowed):
        return page("device.html", 404, refusal="No device waits for this code. It may have run out.")
    said = "The device is signed in." if allowed else "The device was not signed in."
    return page("message.html", title="Done", text=f"{said} You can close this page.")


@bp.get("/login/invitation")
def ask_for_invitation() -> ResponseReturnValue:
    return page("invitation.html") if browser.signed_in() else ask_to_sign_in(INVITATION)


@bp.post("/login/invitation")
def accept_invitation() -> ResponseReturnValue:
    check_form()
    session = browser.signed_in()
    if session is None:
        return ask_to_sign_in(INVITATION)
    limit_attempts(session.subject)
    caller = Principal(Kind.USER, session.subject, provider=deps().provider.name, user_id=session.user_id)
    try:
        joined = usecases.accept_invitation(deps(), caller, field("code"))
    except (model.NotFound, model.MemberExists, model.LimitReached) as refusal:
        return page("invitation.html", 403, refusal=str(refusal) or type(refusal).__doc__)
    return page("message.html", title="Welcome", text=f"You are a member of {joined.name} now.")


@bp.errorhandler(model_login.TotpRequired)
def ask_for_second_factor(_: Exception) -> ResponseReturnValue:
    session = browser.signed_in()
    known = session is not None and login.has_totp(deps(), session)
    return page("totp.html" if known else "totp_required.html", 403, next=_this_page())


@bp.get("/login/style.css")
def show_style() -> ResponseReturnValue:
    return STYLE, 200, {"Content-Type": "text/css; charset=utf-8", "Cache-Control": "public, max-age=3600"}


def ask_to_sign_in(goes_on_at: str) -> Response:
    """The page of the step that is missing."""
    pending = browser.session()
    template = "totp.html" if pending and not pending.signed_in else "sign_in.html"
    return page(template, next=goes_on_at)


def consent_page(
    session: model_login.Session, client: model_login.Client, *, action: str, user_code: str = "", leads_to: str = ""
) -> Response:
    choices = grants.list_choices(deps(), session)
    if not choices:
        raise model_login.NoMembership
    addresses = [leads_to] if leads_to else []
    return page("consent.html", leads_to=addresses, client=client, choices=choices, action=action, user_code=user_code)


def chosen_organization() -> UUID | None:
    value = field("organization")
    return UUID(value) if Identifier.PATTERN.fullmatch(value) else None


def next_page() -> str:
    """Where to go on after signing in: one of our own pages, whatever the form says."""
    wanted = field("next", 4096)
    return wanted if _NEXT.fullmatch(wanted) else HOME


def _this_page() -> str:
    """The page of the form, to be shown again."""
    if request.path == "/login/device":
        return f"/login/device?user_code={_letters(field('user_code', 32))}"
    return request.full_path


def _qr_code(address: str) -> Markup:
    """Drawn by attributes alone: the policy of our pages allows no style inside of them, and no image."""
    drawn = segno.make(address, error="m").svg_inline(omitsize=True, border=4, light="#fff", title="QR code of the key")
    return Markup(drawn)  # noqa: S704 - nothing of the address is in it but squares # nosec B704


def _letters(text: str) -> str:
    return re.sub(r"[^A-Za-z-]", "", text)


def _subject() -> str:
    address = model_login.subject_of(field("email"))
    return address if is_name(address) else ""
