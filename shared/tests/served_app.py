"""An app for tests of the server: it tells what it was sent, when told to. Every key is good, but those invented."""

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from chassis import http_rules
from chassis.callers import CREDENTIAL_CHECK
from chassis.fair_queue import REFUSED
from chassis.principals import Kind, Principal

_BEGUN: list[str] = []
_RELEASED = threading.Event()
_MEETING = threading.Barrier(int(os.environ["WEB_THREADS"]), timeout=20)


LARGE = 32 * 1024 * 1024


def create_app() -> Callable[..., Iterable[bytes]]:
    http_rules.HEADERS_S = float(os.environ.get("TEST_HEADERS_S", http_rules.HEADERS_S))
    http_rules.BODY_S = float(os.environ.get("TEST_BODY_S", http_rules.BODY_S))

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status = _status(environ)
        told = (_told(environ) if status == "200 OK" else "").encode("latin-1")
        start_response(status, [("Content-Length", str(len(told)))])
        return [told]

    return app


def _status(environ: dict[str, Any]) -> str:
    key = environ.get("HTTP_X_API_KEY")
    if REFUSED in environ:
        return f"{environ[REFUSED].status} No"
    if key and key.startswith("invented"):
        environ[CREDENTIAL_CHECK].refuse()
        return "401 No"
    if key:
        organization = uuid5(NAMESPACE_URL, key.split("/")[0])
        environ[CREDENTIAL_CHECK].verify(Principal(Kind.API_KEY, key, organization))
    return "200 OK"


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
    if path == "/hold":
        _BEGUN.append(path)
        _RELEASED.wait(20)
    if path == "/release":
        _RELEASED.set()
    if path == "/slow":
        _BEGUN.append(path)
        time.sleep(1.0)
    return f"{environ['REQUEST_METHOD']} {path} {len(environ['wsgi.input'].read())}"
