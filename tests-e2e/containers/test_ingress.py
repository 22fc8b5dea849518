"""The ingress: TLS, what it lets through, and what it keeps inside."""

from typing import Any

import pytest
import requests


def ask(stack: Any, path: str, **options: Any) -> requests.Response:
    """Without the client's own tidying of the path."""
    with requests.Session() as session:
        prepared = session.prepare_request(
            requests.Request(options.pop("method", "GET"), stack.local["base_url"], **options)
        )
        prepared.url = stack.local["base_url"] + path
        return session.send(prepared, verify=str(stack.ca), timeout=30)


def test_nobody_is_asked_to_trust_an_unknown_certificate(stack: Any) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(stack.local["base_url"] + "/openapi.json", timeout=10)


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/health/ready",
        "/health/live",
        "//metrics",
        "/v1/../metrics",
        "/v1/%2e%2e/health/ready",
        "/",
        "/sim/ledger",
    ],
)
def test_what_is_for_operators_stays_inside(stack: Any, path: str) -> None:
    answer = ask(stack, path)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_the_whole_api_is_described_at_the_ingress(stack: Any) -> None:
    paths = ask(stack, "/openapi.json").json()["paths"]

    assert {"/v1/accounts/outbox/health", "/api/v1/auth/api-key/validate"} <= set(paths)
    assert "/v1/accounts/outbox/health" in ask(stack, "/docs").text


def test_a_body_over_64_kib_is_refused_before_a_service_sees_it(stack: Any) -> None:
    answer = ask(stack, "/v1/accounts", method="POST", data=b"x" * 65537, headers={"Content-Type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_caller_cannot_choose_the_address_it_is_counted_under(stack: Any) -> None:
    key = {"api_key": stack.organization("acme")["api_keys"]["paper"]}
    left = [
        int(answer.headers["RateLimit"].split("r=")[1].split(";")[0])
        for answer in (
            ask(stack, "/api/v1/auth/api-key/validate", method="POST", json=key, headers={"X-Forwarded-For": claimed})
            for claimed in ("192.0.2.1", "192.0.2.2", "192.0.2.3, 192.0.2.4")
        )
    ]

    # One count for all three: each answer has less left than the others. Believed, each would be the first of its own.
    assert len(set(left)) == len(left)


@pytest.mark.parametrize(
    ("path", "code"),
    [("/v1/accounts/outbox/health", None), ("/v1/accounts", "unauthenticated"), ("/v1/users/me", None)],
)
def test_paths_reach_the_service_that_has_them(stack: Any, path: str, code: str | None) -> None:
    assert ask(stack, path).status_code == 401


def test_the_stream_comes_through_as_server_sent_events_without_delay(stack: Any) -> None:
    account = stack.account("acme")
    payload = {"symbol": "SSE", "order_side": "BUY", "spec": {"Market": {"quantity": "0.1"}}}
    command = {"command": {"type": "CREATE", "payload": payload}}
    assert stack.key("acme")("POST", f"/v1/accounts/{account}/intents", command).status_code == 201

    url = f"{stack.local['events_url']}/v1/accounts/{account}/events?resume_after_sequence=0"
    headers = {"x-api-key": stack.organization("acme")["api_keys"]["paper"]}
    with requests.get(url, headers=headers, stream=True, timeout=30, verify=str(stack.ca)) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert next(line for line in answer.iter_lines() if line.startswith(b"data:"))
