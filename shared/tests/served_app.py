"""An app for test_asgi: it tells what it was sent, when it is told to."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any


def create_app() -> Callable[..., Iterable[bytes]]:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/slow":
            time.sleep(1.0)
        if environ["PATH_INFO"] == "/worker":
            told = str(os.getpid()).encode()
            start_response("200 OK", [("Content-Length", str(len(told)))])
            return [told]
        told = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {len(environ['wsgi.input'].read())}".encode(
            "latin-1"
        )
        start_response("200 OK", [("Content-Length", str(len(told)))])
        return [told]

    return app
