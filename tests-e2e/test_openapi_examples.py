"""The examples and samples of the OpenAPI document."""

import json
from collections.abc import Iterator
from typing import Any

import api_document
import pytest
from api_document import described_operations
from google.protobuf import json_format  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator

import tip_brokers
from accounts.schemas import Broker
from trading_proto import trading_pb2


@pytest.fixture(scope="module")
def document() -> Any:
    return api_document.client().get("/openapi.json").json


def with_bodies(document: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The content of every request, and of every answer that succeeds and is no page, with its place."""
    for place, operation in described_operations(document):
        contents = dict(operation.get("requestBody", {}).get("content", {}))
        yield from ((place, content) for content in contents.values())
        for status, answer in operation["responses"].items():
            for kind, content in answer.get("content", {}).items() if int(status) < 400 else ():
                if kind != "text/html":
                    yield f"{place} {status}", content


def test_every_request_and_answer_has_an_example(document: Any) -> None:
    bodies = list(with_bodies(document))

    assert bodies and [place for place, content in bodies if "example" not in content] == []
    assert [place for place, content in bodies if '"string"' in json.dumps(content["example"])] == []


def test_examples_are_what_their_schemas_say(document: Any) -> None:
    components = {"components": document["components"]}  # which references lead to
    for place, content in with_bodies(document):
        checker = Draft202012Validator(content["schema"] | components)
        assert [
            f"{place}: {error.json_path} {error.message}" for error in checker.iter_errors(content["example"])
        ] == []


def samples(document: Any, lang: str) -> dict[str, str]:
    return {
        place: sample["source"]
        for place, operation in described_operations(document)
        for sample in operation["x-codeSamples"]
        if sample["lang"] == lang
    }


def test_only_answers_that_the_typescript_client_reads_have_a_sample_of_it(document: Any) -> None:
    shown = samples(document, "TypeScript")

    assert "GET /v1/accounts/{account_id}/orders" in shown and "DELETE /v1/accounts/{account_id}" in shown
    assert shown.keys().isdisjoint({"GET /v1/accounts/{account_id}/events", "GET /oauth/authorize"})
    streamed = {place for place, source in shown.items() if '"parseAs": "stream"' in source}
    assert streamed == {
        "GET /v1/accounts/{account_id}/statement",
        "GET /v1/organizations/{organization_id}/audit-entries/export",
    }


def test_a_sample_has_the_query_that_its_operation_needs(document: Any) -> None:
    source = samples(document, "Shell")["GET /oauth/authorize"]

    assert "?response_type=code&client_id=tip&redirect_uri=http%3A%2F%2F127.0.0.1" in source
    assert "code_challenge_method=S256" in source


def test_the_event_of_the_example_is_one_of_the_stream(document: Any) -> None:
    answer = document["paths"]["/v1/accounts/{account_id}/events"]["get"]["responses"]["200"]
    [data] = [
        line.removeprefix("data: ")
        for line in answer["content"]["text/event-stream"]["example"].splitlines()
        if line.startswith("data: ")
    ]
    event = document["components"]["schemas"]["TradingEvent"] | {"components": document["components"]}
    message = json_format.Parse(data, trading_pb2.TradingEvent())

    assert list(Draft202012Validator(event).iter_errors(json.loads(data))) == []
    assert message.WhichOneof("payload") == "heartbeat"


def test_the_broker_of_the_example_is_the_paper_broker(document: Any) -> None:
    answer = document["paths"]["/v1/brokers"]["get"]["responses"]["200"]["content"]["application/json"]["example"]

    assert answer == {"data": [Broker().dump(tip_brokers.find("paper"))]}
