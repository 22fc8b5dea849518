"""Symbols with a slash in them, such as BTC%2FUSD, in the middle of a path.

WSGI hands a path on with `%2F` already decoded, so `/symbols/BTC%2Ftime` and `/symbols/BTC/time` would be the same, and
`..%2f` would move between routes. The segments are therefore taken from the address as it was sent, and one that holds
a slash stays a single, quoted segment until the converter below reads it.
"""

from typing import TYPE_CHECKING
from urllib.parse import quote, quote_from_bytes, unquote, unquote_to_bytes, urlsplit

from werkzeug.routing import BaseConverter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class WholeSegments:
    """WSGI middleware that gives the app a path in which only real slashes separate."""

    def __init__(self, app: "WSGIApplication") -> None:
        self._app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        sent = _path_as_sent(environ)
        if "%" in sent and unquote(sent) == _text(environ["PATH_INFO"]):  # else somebody before us changed the path
            environ["PATH_INFO"] = "/".join(_whole(segment) for segment in sent.split("/"))
        return self._app(environ, start_response)


def _path_as_sent(environ: "WSGIEnvironment") -> str:
    """Empty where the server does not report it."""
    address = str(environ.get("RAW_URI") or environ.get("REQUEST_URI") or "")
    return address.partition("?")[0] if address.startswith("/") else urlsplit(address).path


def _text(path: str) -> str:
    """WSGI's latin-1 characters, decoded as UTF-8."""
    return path.encode("latin-1").decode("utf-8", "replace")


def _whole(segment: str) -> str:
    plain = unquote_to_bytes(segment)
    return quote_from_bytes(plain, safe="") if b"/" in plain or b"%" in plain else plain.decode("latin-1")


class Segment(BaseConverter):
    """One segment of the path, whatever is in it; the view says whether it is a symbol."""

    regex = r"[^/]+"

    def to_python(self, value: str) -> str:
        return unquote(value)

    def to_url(self, value: str) -> str:
        return quote(value, safe="")
