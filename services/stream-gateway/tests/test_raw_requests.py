"""The gateway's HTTP port, and requests written byte by byte."""

from contextlib import ExitStack
from uuid import UUID

import pytest
import requests

from tip_testing import raw_http
from tip_testing.identity_fixtures import Organization

from .gateway_process import Gateway

GET = b"GET /health/live HTTP/1.1\r\n"
REFUSED = {
    "no host": (GET + b"\r\n", 400, "bad_request"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "bad_request"),
    "no version": (b"GET /\r\n\r\n", 400, "bad_request"),
    "an escape in a value": (GET + b"Host: tip\r\nX: \x1b[2J\x00\r\n\r\n", 400, "bad_request"),
    "a long header": (GET + b"Host: tip\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431, "headers_too_large"),
    "a body in gzip": (
        GET + b"Host: tip\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        501,
        "unsupported_transfer_coding",
    ),
    "a huge length": (GET + b"Host: tip\r\nContent-Length: 1000000000000\r\n\r\n", 413, "body_too_large"),
}
PAGES = ("/health/live", "/health/ready", "/openapi.json", "/docs")


def port(gateway: Gateway) -> int:
    return int(gateway.environment["EVENTS_PORT"])


@pytest.mark.parametrize(("sent", "status", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_the_server_itself_refuses_is_a_problem_like_any_other(
    gateway: Gateway, sent: bytes, status: int, code: str
) -> None:
    answer = raw_http.request(port(gateway), sent)

    assert answer.problem == (status, code)
    assert answer.headers["x-content-type-options"] == "nosniff" and len(answer.body) < 600


def test_headers_that_come_drop_by_drop_are_cut_off_and_hold_up_nobody(gateway: Gateway) -> None:
    with ExitStack() as held:
        for _ in range(50):
            held.enter_context(raw_http.opened(port(gateway))).sendall(GET)
        slow = held.enter_context(raw_http.opened(port(gateway)))
        assert requests.get(f"{gateway.events_url}/health/live", timeout=60).status_code == 200
        answer = raw_http.trickle(slow, GET + b"X-Slow: ", b"x", every_s=0.5)

    assert answer is not None and answer.problem == (408, "request_timeout")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_takes_no_parameters(gateway: Gateway, path: str) -> None:
    assert requests.get(gateway.events_url + path, timeout=60).status_code == 200
    answer = requests.get(f"{gateway.events_url}{path}?unknown=1", timeout=60)

    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_query")


@pytest.mark.parametrize("second", ["x-api-key", "Authorization"])
def test_two_credentials_are_refused(gateway: Gateway, acme: Organization, account_id: UUID, second: str) -> None:
    credentials = {"x-api-key": acme.api_keys["paper"], "Authorization": f"Bearer {acme.tokens['admin']}"}
    lines = [
        f"GET /v1/accounts/{account_id}/events HTTP/1.1",
        "Host: tip",
        f"x-api-key: {acme.api_keys['paper']}",
        f"{second}: {credentials[second]}",
    ]

    assert raw_http.request(port(gateway), "\r\n".join([*lines, "", ""]).encode()).problem == (400, "two_credentials")


def test_the_page_may_not_be_framed_nor_load_or_run_what_is_not_ours(gateway: Gateway) -> None:
    headers = requests.get(f"{gateway.events_url}/docs", timeout=60).headers

    assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'; script-src 'self';")
    assert (headers["X-Frame-Options"], headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
