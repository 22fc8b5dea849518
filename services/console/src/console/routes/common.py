"""What all pages share: cookies, the token against forged requests, headers, and how a page is answered."""

import hashlib
import hmac
from importlib.resources import files
from typing import Any, cast
from urllib.parse import urlsplit

from flask import Response, current_app, g, redirect, render_template, request

from chassis.problems import Problem
from console import model, usecases
from console.api import ApiProblem, Caller, with_token

SESSION, SIGN_IN, THEME = "tip_console", "tip_console_sign_in", "tip_console_theme"
THEMES = ("light", "dark")
STATIC = {file.name: file.read_bytes() for file in (files("console") / "static").iterdir() if file.is_file()}
VERSION = hashlib.sha256(b"".join(STATIC[name] for name in sorted(STATIC))).hexdigest()[:12]
"""In the address of every static file, so that browsers keep them for ever and never mix two releases."""
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FORMS_OF = {
    **dict.fromkeys(("credentials", "disable", "enable", "close", "test"), "settings"),
    "key": "ticket",
    "refresh": "positions",
}
"""Forms of an account, whose pages are beside them."""
_SENDING = ("POST", "PUT", "PATCH", "DELETE")


def deps() -> usecases.Deps:
    return cast("usecases.Deps", current_app.extensions["deps"])


def origin() -> str:
    """Scheme, host and port of our pages."""
    return cast("str", current_app.extensions["origin"])


def session() -> model.Session:
    """Whoever uses this browser; raises SignedOut if nobody has signed in."""
    if "session" not in g:
        g.session = usecases.current_session(deps(), cookie(SESSION))
    return cast("model.Session", g.session)


def api() -> Caller:
    """The API as whoever uses this browser."""
    return with_token(deps().api, session().tokens.access)


def check_origin() -> None:
    """A request that changes something comes from our own pages, in this browser: by its headers and by its token."""
    if request.method not in _SENDING:
        return
    sent = request.form.get("csrf") or request.headers.get("X-CSRF-Token", "")
    ours = hmac.compare_digest(sent.encode(), form_token().encode())
    if not ours or request.headers.get("Origin", origin()) != origin():
        raise Problem(403, "forged_form", "This page is too old. Go back, load it again and repeat what you did.")


def form_token() -> str:
    return model.form_token(cookie(SESSION))


def page(template: str, status: int = 200, **values: Any) -> Response:
    """A page of ours; `values` are what its template shows."""
    shown = {"theme": theme(), "version": VERSION, "csrf": form_token(), "here": address(), **values}
    body = render_template(template, **shown)
    return Response(body, status, PAGE_HEADERS, content_type="text/html; charset=utf-8")


def address() -> str:
    """Where the page can be loaded. Forms are sent to addresses below the page that they are on."""
    path = request.path
    routes = current_app.url_map.bind("console")
    while path.startswith(f"{model.HOME}/") and request.method != "GET" and not routes.test(path, "GET"):
        parent, _, last = path.rpartition("/")
        path = f"{parent}/{_FORMS_OF[last]}" if last in _FORMS_OF else parent
    return path


def go_to(path: str) -> Response:
    return cast("Response", redirect(path, 303))


def theme() -> str:
    """What the person chose; empty: what the system says."""
    chosen = request.cookies.get(THEME, "")
    return chosen if chosen in THEMES else ""


def field(name: str, longest: int = 255) -> str:
    """What somebody typed, without the spaces around it.

    What is too long is refused: taken for empty, it would lift the limit that it was meant to set.
    """
    return _checked(name, request.form.get(name, "").strip(), longest)


def secret_field(name: str, longest: int) -> str:
    """As it was typed, spaces and all; its lines end as they did before the browser sent them."""
    return _checked(name, request.form.get(name, "").replace("\r\n", "\n"), longest)


def _checked(name: str, value: str, longest: int) -> str:
    if len(value) > longest:
        raise _bad_field(name, f"has more than {longest} characters")
    if "\x00" in value:
        raise _bad_field(name, "has a character that cannot be kept")
    return value


def _bad_field(name: str, why: str) -> ApiProblem:
    detail = f"{name.replace('_', ' ').capitalize()} {why}. Nothing was changed."
    return ApiProblem(422, {"code": "invalid", "detail": detail})


def cookie(name: str) -> str:
    return request.cookies.get(_cookie_name(name), "")


def with_cookie(response: Response, name: str, value: str, *, max_age: int | None = None) -> Response:
    """HttpOnly, and until the browser is closed unless it says otherwise. Without a value it is taken away."""
    options: dict[str, Any] = {"secure": _is_secure(), "httponly": True, "samesite": "Lax", "path": "/"}
    response.set_cookie(_cookie_name(name), value, max_age=max_age if value else 0, **options)
    return response


def _cookie_name(name: str) -> str:
    """The prefix has browsers refuse the cookie from anybody but this host, over TLS."""
    return f"__Host-{name}" if _is_secure() and name != THEME else name


def _is_secure() -> bool:
    return origin().startswith("https://")


def is_at_home() -> bool:
    """Whether the browser came by the address that it is sent back to; a proxy in front may have left the port out."""
    home = urlsplit(origin())
    return request.host in (home.netloc, home.hostname)
