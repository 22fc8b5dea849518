"""The OpenAPI document of the whole API, as generators of clients read it."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import api_document
import pytest
from api_document import described_operations

from chassis.openapi_descriptions import COMMON
from chassis.problem_types import TYPES
from chassis.services import WEB_SERVICES
from identity import model


@pytest.fixture(scope="module")
def document() -> Any:
    return api_document.client().get("/openapi.json").json


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


def places(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document, with its address in it."""
    if isinstance(node, dict):
        yield path, node
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(value, f"{path}/{key}")


def fields(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in document["components"]["schemas"].items():
        yield from places(schema.get("properties", {}), name)


def test_every_reference_leads_somewhere(document: Any) -> None:
    for place, node in places(document):
        if isinstance(reference := node.get("$ref"), str):
            found = document
            for part in reference.removeprefix("#/").split("/"):
                assert part in found, f"{place}: {reference}"
                found = found[part]


def test_no_field_has_a_default_that_makes_generators_require_it(document: Any) -> None:
    assert [place for place, node in fields(document) if not isinstance(node.get("default", {}), dict)] == []


def test_a_default_is_said_in_words(document: Any) -> None:
    strategy = document["components"]["schemas"]["CreatePayload"]["properties"]["route_strategy"]

    assert strategy["description"].endswith("where the broker can. `AUTO` if it is left out.")


def test_every_choice_of_words_and_every_object_has_a_name(document: Any) -> None:
    inline = [place for place, node in fields(document) if len(node.get("enum", ())) > 1]
    # A field may be called `properties`; an object of a document has them beside its type.
    inline += [place for place, node in fields(document) if node.get("type") == "object" and "properties" in node]

    assert [place for place in inline if "contentSchema" not in place] == []


def test_one_choice_is_one_type(document: Any) -> None:
    choices = [tuple(schema["enum"]) for schema in document["components"]["schemas"].values() if "enum" in schema]

    assert len(choices) == len(set(choices))
    assert document["components"]["schemas"]["OrderSide"]["enum"] == ["BUY", "SELL"]


def test_the_terms_of_an_order_are_typed_wherever_it_is_answered(document: Any) -> None:
    schemas = document["components"]["schemas"]
    names = ("Market", "Limit", "Stop", "StopLimit", "TrailingStop")
    kinds = [{"$ref": f"#/components/schemas/{name}Spec"} for name in names]

    assert schemas["Order"]["properties"]["spec"]["oneOf"] == kinds
    for name in ("Action", "Refusal"):
        assert schemas[name]["properties"]["spec"]["oneOf"] == [*kinds, {"type": "null"}]


def test_answers_say_which_headers_they_have(document: Any) -> None:
    answers = {
        f"{method} {path} {status}": answer.get("headers", {})
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        for status, answer in operation["responses"].items()
    }
    submit, account = "post /v1/accounts/{account_id}/intents", "get /v1/accounts/{account_id}"

    assert all("X-Request-Id" in headers for headers in answers.values())
    assert {"Location", "Idempotent-Replayed"} <= answers[f"{submit} 201"].keys()
    assert "Retry-After" in answers[f"{submit} 503"]
    assert "ETag" in answers[f"{account} 200"]
    assert "ETag" not in answers[f"{account} 404"]


def test_the_api_is_at_the_address_of_its_document(document: Any) -> None:
    assert document["servers"] == [{"url": "/"}]


def test_a_refusal_in_a_batch_is_a_problem(document: Any) -> None:
    problem = document["components"]["schemas"]["BatchResult"]["properties"]["problem"]

    assert problem["oneOf"] == [{"$ref": "#/components/schemas/Problem"}]


def test_the_page_says_what_holds_if_a_field_is_left_out() -> None:
    page = api_document.client().get("/docs").text

    assert "where the broker can. <code>AUTO</code> if it is left out." in page


def undescribed(document: Any) -> Iterator[str]:
    """Every field, parameter, header and operation that the document does not explain, by its place."""
    for place, node in places(document):
        for name, field in node.get("properties", {}).items() if node.get("type") == "object" else ():
            if not field.get("description"):
                yield f"{place}/{name}"
    for place, operation in described_operations(document):
        if not (operation["summary"] and operation["description"]):
            yield place
        yield from (f"{place} {item['name']}" for item in operation["parameters"] if not item.get("description"))
    yield from (name for name, header in document["components"]["headers"].items() if not header.get("description"))
    schemes = document["components"]["securitySchemes"]
    yield from (name for name, scheme in schemes.items() if not scheme.get("description"))


def test_everything_in_the_document_is_described(document: Any) -> None:
    assert list(undescribed(document)) == []


def test_a_description_is_a_short_sentence(document: Any) -> None:
    texts = {node["description"] for _, node in places(document) if isinstance(node.get("description"), str)}

    assert [text for text in texts if not text.endswith(".") or "\n" in text] == []


def test_every_problem_of_an_operation_has_its_codes(document: Any) -> None:
    for place, operation in described_operations(document):
        for status, answer in operation["responses"].items():
            if "application/problem+json" in answer.get("content", {}):
                codes = answer["x-problem-codes"]
                assert codes, f"{place} {status}"
                assert all(int(status) in TYPES[code].statuses for code in codes), f"{place} {status}"


def test_a_submit_names_what_may_refuse_it(document: Any) -> None:
    answers = document["paths"]["/v1/accounts/{account_id}/intents"]["post"]["responses"]

    assert {"intent_terminal", "client_id_taken"} <= set(answers["409"]["x-problem-codes"])
    assert {"invalid", "control_rejected", "broker_cannot"} <= set(answers["422"]["x-problem-codes"])
    assert "`overloaded`" in answers["503"]["description"]


def test_no_text_is_about_a_field_that_is_not_there(document: Any) -> None:
    names = set()
    for owner, schema in document["components"]["schemas"].items():
        names |= {word for field in schema.get("properties", ()) for word in (field, f"{owner}.{field}")}
    for _, operation in described_operations(document):
        names |= {word for item in operation["parameters"] for word in (item["name"], f"{item['in']}.{item['name']}")}
        names |= {field for _, node in places(operation) for field in node.get("properties", ())}
    tables = (COMMON, *(import_module(f"{service}.descriptions").FIELDS for service in WEB_SERVICES))

    assert [name for table in tables for name in table if name not in names] == []


def test_what_commits_nothing_has_no_unknown_outcome(document: Any) -> None:
    def codes(method: str, path: str) -> list[str]:
        found: list[str] = document["paths"][path][method]["responses"]["503"]["x-problem-codes"]
        return found

    assert "outcome_unknown" in codes("post", "/v1/accounts/{account_id}/intents")
    assert codes("get", "/v1/accounts/{account_id}/intents") == ["unavailable"]
    assert codes("post", "/api/v1/auth/api-key/validate") == ["unavailable"]
