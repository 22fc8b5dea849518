"""An app for tests of the server: it tells what it was sent, when it is told to."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from chassis import http_rules

_BEGUN: list[str] = []
_MEETING = threading.Barrier(int(os.environ["WEB_THREADS"]), timeout=20)


LARGE = 32 * 1024 * 1024


def create_app() -> Callable[..., Iterable[bytes]]:
    http_rules.HEADERS_S = float(os.environ.get("TEST_HEADERS_S", http_rules.HEADERS_S))
    http_rules.BODY_S = float(os.environ.get("TEST_BODY_S", http_rules.BODY_S))

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        told = _told(environ).encode("latin-1")
        start_response("200 OK", [("Content-Length", str(len(told)))])
        return [told]

    return app


def _told(environ: dict[str, Any]) -> str:
    path = environ["PATH_INFO"]
    if path == "/worker":
        return str(os.getpid())
    if path == "/slow/begun":
        return str(len(_BEGUN))
    if path == "/large":
        return "x" * LARGE
    if path == "/meet":
        _MEETING.wait()
        return f"{_MEETING.parties} have met"
    if path == "/slow":
        _BEGUN.append(path)
        time.sleep(1.0)
    return f"{environ['REQUEST_METHOD']} {path} {len(environ['wsgi.input'].read())}"
