"""Paths as a real server hands them on: gunicorn, and requests written byte by byte."""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tip_testing.ports import reserved_port
from tip_testing.processes import running


@pytest.fixture(scope="module")
def port(platform: Any) -> Iterator[int]:
    number = reserved_port()
    web = {"WEB_PORT": str(number), "WEB_WORKERS": "1", "WEB_THREADS": "2"}
    command = ("-m", "gunicorn", "-c", "python:chassis.gunicorn_conf", "controls.app:create_app()")
    environment = {**platform.web_environment("controls"), **web}
    with running(*command, environment=environment, ready=lambda _: listens(number)):
        yield number


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def put(port: int, target: str, token: str) -> tuple[int, str]:
    body = b'{"manually_disabled": true}'
    head = (
        f"PUT {target} HTTP/1.1\r\nHost: tip\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode("latin-1") + body)
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    return int(answer.split(b" ", 2)[1]), answer.decode("utf-8", "replace")


def test_a_slash_in_a_symbol_reaches_the_symbol_and_nothing_reaches_another_route(
    setting: Any, organization: Any, controls: Any, port: int
) -> None:
    base = f"/v1/controls/accounts/{controls.account_id}/symbols"
    token = organization.tokens["admin"]

    made, answer = put(port, f"{base}/BTC%2FUSD", token)
    absolute, _ = put(port, f"http://tip{base}/btc%2fusd?", token)
    like_a_route, _ = put(port, f"{base}/BTC%2Ftime", token)

    assert (made, absolute, like_a_route) == (201, 200, 201)
    assert '"symbol":"BTC/USD"' in answer.replace(" ", "")
    before = setting.everything()
    climbing = [
        "..%2f..%2f..%2f..%2forganization",
        "..%2F..%2Flimits",
        "%2e%2e%2f%2e%2e",
        "%00",
        "%ff",
        "AAPL%252Ftime",
    ]
    for segment in climbing:
        assert (segment, put(port, f"{base}/{segment}", token)[0]) == (segment, 422)
        assert (segment, put(port, f"{base}/{segment}/limits", token)[0]) == (segment, 422)
    for target in (f"{base}/../../organization", f"{base}/./AAPL", f"{base}//AAPL", f"{base}/AAPL/../MSFT"):
        assert put(port, target, token)[0] == 404
    assert setting.everything() == before
