"""The ingress: TLS, what it lets through, and what it keeps inside."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from tip_testing import raw_http
from tip_testing.commands import create

HOST = b"Host: tip\r\n"


def request(stack: Any, path: str, **options: Any) -> requests.Response:
    """Without the client's own tidying of the path."""
    with requests.Session() as session:
        prepared = session.prepare_request(
            requests.Request(options.pop("method", "GET"), stack.local["base_url"], **options)
        )
        prepared.url = stack.local["base_url"] + path
        return session.send(prepared, verify=str(stack.ca), timeout=60)


@contextmanager
def connected(stack: Any) -> Iterator[socket.socket]:
    """To send what no client would. With TLS 1.2, where servers send nothing first: what can be read is an answer."""
    address = urlsplit(stack.local["base_url"])
    context = ssl.create_default_context(cafile=str(stack.ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    plain = socket.create_connection((address.hostname, address.port or 443), timeout=raw_http.PATIENCE_S)
    with plain, context.wrap_socket(plain, server_hostname=address.hostname) as connection:
        yield connection


def test_an_unknown_certificate_is_not_trusted(stack: Any) -> None:
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(stack.local["base_url"] + "/openapi.json", timeout=60)


@pytest.mark.parametrize(
    "path",
    [
        "/metrics",
        "/health/ready",
        "/health/live",
        "//metrics",
        "/v1/../metrics",
        "/v1/%2e%2e/health/ready",
        "/sim/ledger",
    ],
)
def test_what_is_for_operators_stays_inside(stack: Any, path: str) -> None:
    answer = request(stack, path)

    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_people_are_led_from_the_root_to_the_login(stack: Any) -> None:
    answer = request(stack, "/")

    assert (answer.status_code, urlsplit(answer.url).path) == (200, "/oauth/authorize")
    assert "<h1>Sign in</h1>" in answer.text


def test_the_whole_api_is_described_at_the_ingress(stack: Any) -> None:
    paths = request(stack, "/openapi.json").json()["paths"]

    assert {"/v1/accounts/outbox/health", "/api/v1/auth/api-key/validate"} <= set(paths)
    assert "/v1/accounts/outbox/health" in request(stack, "/docs").text


@pytest.mark.parametrize("path", ["/manual", "/manual/concepts", "/manual/reference/changelog", "/manual/search.json"])
def test_the_manual_comes_with_the_image(stack: Any, path: str) -> None:
    assert request(stack, path).status_code == 200


def test_a_body_over_64_kib_is_refused_before_a_service_sees_it(stack: Any) -> None:
    answer = request(
        stack, "/v1/accounts", method="POST", data=b"x" * 65537, headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


REFUSED: dict[str, tuple[bytes, tuple[int, str]]] = {
    "no request line": (b"GARBAGE\r\n\r\n", (400, "bad_request")),
    "no host": (b"GET /v1/accounts HTTP/1.1\r\n\r\n", (400, "bad_request")),
    "an unknown version": (b"GET /v1/accounts HTTP/3.0\r\n" + HOST + b"\r\n", (400, "bad_request")),
    "two lengths": (
        b"POST /v1/accounts HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        (400, "bad_request"),
    ),
    "a long request line": (
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        (414, "uri_too_long"),
    ),
    "a long header": (
        b"GET /v1/accounts HTTP/1.1\r\n" + HOST + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n",
        (431, "headers_too_large"),
    ),
    "a method that a page has not": (
        b"POST /openapi.json HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\n\r\n",
        (405, "method_not_allowed"),
    ),
    "another transfer coding": (
        b"POST /v1/accounts HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        (501, "unsupported_transfer_coding"),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_ingress_itself_refuses_is_a_problem_like_every_other(stack: Any, what: str) -> None:
    sent, problem = REFUSED[what]
    with connected(stack) as connection:
        connection.sendall(sent)
        answer = raw_http.read_answer(connection)

    assert answer is not None and answer.problem == problem
    assert {"type", "title", "detail", "instance"} <= answer.json.keys()


def test_a_problem_of_the_ingress_names_the_path_and_the_callers_request_but_not_the_query(stack: Any) -> None:
    with connected(stack) as connection:
        connection.sendall(b'GET /nowhere"x?key=secret HTTP/1.1\r\nX-Request-Id: mine\r\n' + HOST + b"\r\n")
        answer = raw_http.read_answer(connection)

    assert answer is not None and answer.problem == (404, "not_found")
    assert (answer.json["instance"], answer.json["request_id"]) == ("/nowhere", "mine")
    assert b"secret" not in answer.body


def test_errors_of_the_ingress_are_plain_text_where_those_of_the_service_are(stack: Any) -> None:
    answer = request(stack, "/v1/users/me", method="DELETE", data=b"x" * 65537)

    assert (answer.status_code, answer.headers["Content-Type"]) == (413, "text/plain; charset=utf-8")


def test_a_body_that_comes_a_byte_at_a_time_is_refused_in_the_end(stack: Any) -> None:
    begun = b"POST /v1/accounts HTTP/1.1\r\n" + HOST + b"Content-Length: 65536\r\n\r\n"
    with connected(stack) as connection:
        answer = raw_http.trickle(connection, begun, b"x", every_s=1.0)

    assert answer is not None and answer.problem == (408, "request_timeout")


def test_a_caller_cannot_choose_the_address_it_is_counted_under(stack: Any) -> None:
    key = {"api_key": stack.organization("acme")["api_keys"]["paper"]}
    left = [
        int(answer.headers["RateLimit"].split("r=")[1].split(";")[0])
        for answer in (
            request(
                stack, "/api/v1/auth/api-key/validate", method="POST", json=key, headers={"X-Forwarded-For": claimed}
            )
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
    assert request(stack, path).status_code == 401


def test_the_stream_comes_through_as_server_sent_events_without_delay(stack: Any) -> None:
    account = stack.account("acme")
    assert stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create("SSE", "0.1")).status_code == 201

    url = f"{stack.local['events_url']}/v1/accounts/{account}/events?resume_after_sequence=0"
    headers = {"x-api-key": stack.organization("acme")["api_keys"]["paper"]}
    with requests.get(url, headers=headers, stream=True, timeout=60, verify=str(stack.ca)) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert next(line for line in answer.iter_lines() if line.startswith(b"data:"))
