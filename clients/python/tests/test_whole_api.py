"""Everything that the API's document has, the client has: each method is called, against a server that only listens."""

import inspect
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from werkzeug.test import Client as DocumentClient

import tip_client as tip
from tip_client._sync.scope import Scope
from tip_local.home import SIGNING_KEY, VAULT_KEY, random_key
from tip_local.web import create_app

# The document is made of the code alone: nothing is behind these addresses.
ENVIRONMENT = {
    "DATABASE_URL": "postgresql://tip@127.0.0.1:1/tip",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    SIGNING_KEY: random_key(),
    VAULT_KEY: random_key(),
    "CURSOR_KEY": "for-tests-only",
}
FOR_OTHERS = {
    ("GET", "/.well-known/openid-configuration"),
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/jwks.json"),
    ("GET", "/oauth/authorize"),
    ("POST", "/oauth/authorize"),
    ("POST", "/oauth/device_authorization"),
    ("POST", "/oauth/revoke"),
    ("GET", "/login/device"),
    ("POST", "/v1/accounts/{account_id}/events/ticket"),
}
"""For those who verify tokens, for browsers, and for OAuth libraries."""

ORDER = tip.Market("AAPL", "BUY", 1)
ARGUMENTS: dict[str, Any] = {
    "order": ORDER,
    "orders": [ORDER],
    "spec": ORDER.spec,
    "secret": {"key_id": "k"},
    "scopes": ["intent:read"],
    "permissions": ["intent:read"],
}
OPTIONAL: dict[str, Any] = {
    "quantity": 1,
    "cancel_open": True,
    "next_cursor": None,
    "newest_first": True,
    "page_size": 7,
}


class Listener(BaseHTTPRequestHandler):
    """Knows nothing, and remembers what it received."""

    received: ClassVar[list[tuple[str, str]]] = []

    def _answer(self) -> None:
        self.received.append((self.command, self.path))
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b'{"code": "not_found"}'
        self.send_response(404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names are http.server's

    def log_message(self, *_arguments: Any) -> None:
        """Not on the terminal."""


@pytest.fixture(scope="module")
def document() -> Any:
    return DocumentClient(create_app(ENVIRONMENT)).get("/openapi.json").json


@pytest.fixture(scope="module")
def received() -> list[tuple[str, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    with tip.Client(settings=tip.Settings(url=url, events_url=url, key="k", account="a")) as client:
        for method in methods(client):
            call(method)
    server.shutdown()
    server.server_close()
    return Listener.received


def methods(client: tip.Client) -> list[Callable[..., Any]]:
    """Those of the client and of each group of calls on it."""
    groups = [client, *(value for name in dir(client) if isinstance(value := getattr(client, name), Scope))]
    of_the_client = {"close", "from_env", "for_account", "platform"}
    named = [(group, name) for group in groups for name in dir(group) if name[0] != "_" and name not in of_the_client]
    return [method for group, name in named if inspect.ismethod(method := getattr(group, name))]


def call(method: Callable[..., Any]) -> None:
    """With something for everything that must be given."""
    wanted = inspect.signature(method).parameters.values()
    given = ARGUMENTS | OPTIONAL
    needed = {found.name: given.get(found.name, found.name) for found in wanted if found.default is found.empty}
    needed.pop("limits", None)
    offered = {found.name: OPTIONAL[found.name] for found in wanted if found.name in OPTIONAL.keys() - needed}
    with suppress(tip.NotFound):
        answer = method(**needed, **offered)
        if isinstance(answer, Iterator):
            next(answer)


def operations(document: Any) -> dict[tuple[str, str], Any]:
    return {(verb.upper(), path): about for path, item in document["paths"].items() for verb, about in item.items()}


def found(document: Any, verb: str, path: str) -> tuple[str, str]:
    """The operation that this request is for; the one with the fewest names in its path, as the platform chooses."""
    fits = [
        template
        for method, template in operations(document)
        if method == verb and re.fullmatch(re.sub(r"\\{[^/]+\\}", "[^/]+", re.escape(template)), path)
    ]
    assert fits, f"{verb} {path} is nothing that the API has"
    return verb, min(fits, key=lambda template: template.count("{"))


def test_the_client_has_everything_that_the_api_has(document: Any, received: list[tuple[str, str]]) -> None:
    reached = {found(document, verb, urlsplit(path).path) for verb, path in received}

    assert set(operations(document)) - reached == FOR_OTHERS


def test_the_client_uses_only_parameters_that_the_api_has(document: Any, received: list[tuple[str, str]]) -> None:
    for verb, path in received:
        operation = operations(document)[found(document, verb, urlsplit(path).path)]
        known = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"}

        assert parse_qs(urlsplit(path).query).keys() <= known, (verb, path)


def python_calls(document: Any) -> dict[tuple[str, str], str]:
    """What the document shows of the SDK, by operation."""
    samples = {key: about["x-codeSamples"] for key, about in operations(document).items()}
    return {key: sample["source"] for key, of in samples.items() for sample in of if sample["lang"] == "Python"}


def test_every_sample_of_the_document_reaches_its_operation(document: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("account", "credential", "key", "organization", "invitation", "client", "intent", "bulk_operation")
    known = {f"{name}_id": name for name in names} | {
        "api_key": "k",
        "client_secret": "s",
        "secret_key": "s",
        "code": "c",
    }
    samples = python_calls(document)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    for name, value in {"TIP_URL": url, "TIP_EVENTS_URL": url, "TIP_KEY": "k", "TIP_ACCOUNT": "a"}.items():
        monkeypatch.setenv(name, value)
    for operation, source in samples.items():
        Listener.received.clear()
        names_of_the_sample: dict[str, Any] = dict(known)
        with suppress(tip.NotFound):
            exec(source, names_of_the_sample)
        names_of_the_sample["client"].close()
        verb, path = Listener.received[0]
        assert found(document, verb, urlsplit(path).path) == operation
    server.shutdown()
    server.server_close()

    assert set(operations(document)) - set(samples) == FOR_OTHERS | {("GET", "/v1/accounts/{account_id}/events")}
