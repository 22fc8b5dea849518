"""The OpenAPI document of the whole API, as generators of clients read it."""

from collections.abc import Iterator
from typing import Any

import pytest
from werkzeug.test import Client

from identity import model
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


@pytest.fixture(scope="module")
def document() -> Any:
    return Client(create_app(ENVIRONMENT)).get("/openapi.json").json


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """Every object of the document."""
    if isinstance(node, dict):
        yield node
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from objects(inner)


def operations(document: Any) -> list[Any]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def test_every_whole_number_has_a_format(document: Any) -> None:
    integers = [node for node in objects(document) if "integer" in str(node.get("type"))]

    assert integers and {node.get("format") for node in integers} == {"int32", "int64"}


def test_the_outbox_health_has_the_formats_of_the_specification(document: Any) -> None:
    schemas = document["components"]["schemas"]
    totals, entry = schemas["OutboxHealthResponse"]["properties"], schemas["OutboxHealthEntry"]["properties"]

    assert {totals[name]["format"] for name in ("pending", "processing", "failed", "completed")} == {"int64"}
    assert (entry["count"]["format"], entry["max_attempts"]["format"]) == ("int64", "int32")


def test_every_schema_has_a_name_for_people(document: Any) -> None:
    names = document["components"]["schemas"]

    assert [name for name in names if not (name.isalpha() and name[0].isupper())] == []


def test_every_alternative_of_a_schema_has_a_name(document: Any) -> None:
    """A generator calls an object without one by its place, such as `CommandType0`."""
    alternatives = [inner for node in objects(document) for word in ("oneOf", "anyOf") for inner in node.get(word, [])]

    assert alternatives and [inner for inner in alternatives if "properties" in inner] == []


def test_the_scopes_that_an_operation_wants_are_listed(document: Any) -> None:
    flow = document["components"]["securitySchemes"]["clientCredentials"]["flows"]["clientCredentials"]
    wanted = {
        scope
        for operation in operations(document)
        for requirement in operation["security"]
        for scope in requirement.get("clientCredentials", ())
    }

    assert wanted == set(flow["scopes"]) == set(model.SCOPES) - {"control:write"}
    assert all(flow["scopes"].values())


@pytest.mark.parametrize(
    ("method", "path", "security"),
    [
        ("get", "/v1/accounts/outbox/health", [{"bearer": []}, {"clientCredentials": ["credential:read"]}]),
        ("post", "/v1/accounts/{account_id}/intents", [{"apiKey": ["intent:edit"]}]),
        (
            "get",
            "/v1/accounts/{account_id}/intents",
            [{"bearer": []}, {"apiKey": ["intent:read"]}, {"clientCredentials": ["intent:read"]}],
        ),
        (
            "put",
            "/v1/controls/accounts/{account_id}/symbols/{symbol}",
            [{"bearer": []}, {"apiKey": ["control:edit"]}],
        ),
        (
            "get",
            "/v1/organizations/by-provider/{provider}/{provider_id}",
            [{"bearer": []}, {"clientCredentials": []}],
        ),
        ("delete", "/v1/users/me", [{"bearer": []}]),
        ("post", "/api/v1/auth/api-key/validate", []),
    ],
)
def test_an_operation_has_the_callers_of_the_specification(
    document: Any, method: str, path: str, security: list[Any]
) -> None:
    found = document["paths"][path][method]["security"]

    assert sorted(found, key=str) == sorted(security, key=str)
