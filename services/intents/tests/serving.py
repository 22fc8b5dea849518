"""An app behind its front, for the test client: the requests of a test go through an event loop, as a server's do."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, TypeVar
from uuid import uuid4

from flask import Flask
from werkzeug.datastructures import Headers
from werkzeug.http import HTTP_STATUS_CODES
from werkzeug.test import EnvironBuilder, TestResponse

from chassis.asgi import Bridge
from intents import app as intents_app
from intents.submit_fast_path import SubmitFastPath

Answer = tuple[int, list[tuple[str, str]], bytes]
Result = TypeVar("Result")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event loop", daemon=True).start()
    return loop


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """In the one event loop of the test's process: what a front has begun there goes on after the answer."""
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()


def create_app(environment: Mapping[str, str]) -> Flask:
    """The app, whose test client sends through the front."""
    app = intents_app.create_app(environment)
    front = app.extensions["front"] = SubmitFastPath(app).start(threads=8)
    app.wsgi_app = _through(front)  # type: ignore[method-assign]
    return app


def introduce(app: Flask, key: str) -> None:
    """Let the front know the key: requests of those it does not know go to Flask."""
    app.test_client().get(f"/v1/accounts/{uuid4()}/intents", headers={"x-api-key": key})


def send_at_once(app: Flask, requests: Sequence[EnvironBuilder]) -> list[TestResponse]:
    """The answers to requests that the front finds waiting all at once."""
    return [answer for answer, _seconds in send_at_once_timed(app, requests)]


def send_at_once_timed(app: Flask, requests: Sequence[EnvironBuilder]) -> list[tuple[TestResponse, float]]:
    """The same, and how long each answer took."""
    front = app.extensions["front"]

    async def timed(request: EnvironBuilder) -> tuple[TestResponse, float]:
        began = time.monotonic()
        status, headers, body = await _answer(front, request.get_environ())
        return TestResponse([body], status, Headers(headers), None), time.monotonic() - began  # type: ignore[arg-type]

    async def gather() -> list[tuple[TestResponse, float]]:
        return await asyncio.gather(*map(timed, requests))

    return run(gather())


def _through(front: Bridge) -> Callable[..., Iterable[bytes]]:
    def call(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        status, headers, body = run(_answer(front, environ))
        start_response(f"{status} {HTTP_STATUS_CODES[status]}", headers)
        return [body]

    return call


async def _answer(front: Bridge, environ: Mapping[str, Any]) -> Answer:
    body = environ["wsgi.input"].read()
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await front(_scope(environ), receive, send)
    headers = [(name.decode("latin-1").title(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    return sent[0]["status"], headers, b"".join(message["body"] for message in sent[1:])


def _scope(environ: Mapping[str, Any]) -> dict[str, Any]:
    path = environ["RAW_URI"].partition("?")[0] if "RAW_URI" in environ else environ["PATH_INFO"]
    named = {name: value for name, value in environ.items() if name.startswith("HTTP_")}
    named |= {f"HTTP_{name}": environ[name] for name in ("CONTENT_TYPE", "CONTENT_LENGTH") if environ.get(name)}
    if "HTTP_TRANSFER_ENCODING" in named:  # with which nobody sends a length
        del named["HTTP_CONTENT_LENGTH"]
    headers = [(name[5:].lower().replace("_", "-"), value) for name, value in named.items()]
    return {
        "type": "http",
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": "http",
        "path": environ["PATH_INFO"],
        "raw_path": path.encode("latin-1"),
        "query_string": environ["QUERY_STRING"].encode("latin-1"),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
        "server": (environ["SERVER_NAME"], int(environ["SERVER_PORT"])),
        "client": (environ.get("REMOTE_ADDR", ""), 0),
    }


def all_pages(get: Callable[..., TestResponse], **query: Any) -> list[dict[str, Any]]:
    """What a list has, page after page; `get` reads one."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = get(**query, **cursor)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        found += answer.json["data"]
        if answer.json["next_cursor"] is None:
            return found
        cursor = {"next_cursor": answer.json["next_cursor"]}
