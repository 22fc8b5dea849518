"""The API document of all services, made of the code alone: nothing is behind its addresses."""

from collections.abc import Iterator
from typing import Any

from werkzeug.test import Client

from tip_local.home import SIGNING_KEY, VAULT_KEY, random_key
from tip_local.web import create_app

ENVIRONMENT = {
    "DATABASE_URL": "postgresql://tip@127.0.0.1:1/tip",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    SIGNING_KEY: random_key(),
    VAULT_KEY: random_key(),
    "CURSOR_KEY": "for-tests-only",
}


def client() -> Client:
    return Client(create_app(ENVIRONMENT))


def described_operations(document: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in document["paths"].items():
        yield from ((f"{method.upper()} {path}", operation) for method, operation in methods.items())
