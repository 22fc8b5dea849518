"""What the pages share: cookies, the token against forged requests, and how a page is answered.

Two cookies: one of the browser, from the first page on, and one of the session, once somebody has signed in. Each form
carries a token made of both, which nobody can make who cannot read them.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

from flask import Response, current_app, g, redirect, render_template, request

from chassis.problems import Problem
from chassis.ratelimit import RateLimit
from identity import model_login
from identity.routes.common import deps
from identity.usecases import login

_LONGEST_COOKIE = 128


def address() -> str:
    """Where browsers reach this service."""
    return cast("str", current_app.extensions["public_url"])


def session() -> model_login.Session | None:
    """The session of this browser, also while its second factor is missing."""
    if "session" not in g:
        g.session = login.find_session(deps(), _cookie("session"))
    return cast("model_login.Session | None", g.session)


def signed_in() -> model_login.Session | None:
    found = session()
    return found if found and found.signed_in else None


def page(
    template: str, status: int = 200, *, leads_to: Iterable[str] = (), footer: bool = True, **values: Any
) -> Response:
    """A page of ours. Its forms go to ourselves; `leads_to` are addresses they may be redirected to."""
    body = render_template(template, csrf=_csrf_token(), session=signed_in() if footer else None, **values)
    headers = {"Content-Security-Policy": _policy(leads_to)}
    response = Response(body, status, headers, content_type="text/html; charset=utf-8")
    return _with_cookie(response, "browser", _browser())


def _policy(leads_to: Iterable[str]) -> str:
    origins = ["'self'", *(f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, leads_to))]
    return (
        f"default-src 'none'; style-src 'self'; form-action {' '.join(origins)}; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def go_to(path: str, cookie: str | None = None, *, drop: bool = False) -> Response:
    """A redirect after a form, with the cookie of a new session, or without the old one."""
    response = cast("Response", redirect(path, 303))
    if cookie is not None or drop:
        return _with_cookie(response, "session", cookie or "")
    return response


def check_form() -> None:
    """A form that was not one of our pages, in this browser and session, is refused."""
    if not hmac.compare_digest(request.form.get("csrf", "").encode(), _csrf_token().encode()):
        raise Problem(403, "forged_form", "This page is too old. Go back, load it again and repeat what you did.")


def field(name: str, longest: int = 255) -> str:
    """What is too long to be anybody's is nobody's."""
    value = request.form.get(name, "")
    return value if len(value) <= longest and "\x00" not in value else ""


def limit_attempts(person: str) -> None:
    """Guessing is limited by address, and by whom the guesses are about: so that no one address keeps them out."""
    limits = current_app.extensions
    cast("RateLimit", limits["login_limit"]).count(f"address:{request.remote_addr}")
    cast("RateLimit", limits["person_limit"]).count(hashlib.sha256(person.encode()).hexdigest())


def _csrf_token() -> str:
    key = f"{_browser()}:{_cookie('session')}"
    return hmac.new(key.encode(), b"csrf", hashlib.sha256).hexdigest()


def _browser() -> str:
    if "browser" not in g:
        g.browser = _cookie("browser") or secrets.token_urlsafe(32)
    return cast("str", g.browser)


def _cookie(name: str) -> str:
    value = request.cookies.get(_name(name), "")
    return value if len(value) <= _LONGEST_COOKIE else ""


def _name(name: str) -> str:
    return f"__Host-tip_{name}" if _secure() else f"tip_{name}"


def _secure() -> bool:
    return address().startswith("https://")


def _with_cookie(response: Response, name: str, value: str) -> Response:
    """Until the browser is closed; the session itself ends earlier. Without a value the cookie is taken away."""
    options: dict[str, Any] = {"secure": _secure(), "httponly": True, "samesite": "Lax", "path": "/"}
    response.set_cookie(_name(name), value, max_age=None if value else 0, **options)
    return response
