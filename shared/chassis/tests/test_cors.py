"""Pages of configured origins may call from browsers, and no others; without configured origins none may."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from chassis.config import BadConfiguration, ServiceConfig
from tip_testing import raw_http

from .served import Server

DESK = "https://desk.example"
REQUIRED = {"DATABASE_URL": "postgresql://tip@127.0.0.1/tip", "REDIS_URL": "redis://127.0.0.1/0", "CURSOR_KEY": "k"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server(app="create_front")
    yield server
    server.end()


@pytest.fixture(scope="module")
def closed_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.end()


def headers(server: Server, head: str) -> tuple[int, dict[str, str]]:
    with closing(server.open()) as line:
        line.sendall(f"{head}\r\nHost: tip\r\n\r\n".encode())
        answer = raw_http.read_answer(line)
        assert answer
        return answer.status, {
            name: value for name, value in answer.headers.items() if "access" in name or name == "vary"
        }


def test_a_page_of_a_configured_origin_may_read_the_answer(server: Server) -> None:
    status, found = headers(server, f"GET /x HTTP/1.1\r\nOrigin: {DESK}")

    assert (status, found["access-control-allow-origin"], found["vary"]) == (200, DESK, "Origin")
    assert "X-Request-Id" in found["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in found, "no cookie is ever a credential"


def test_a_browser_learns_before_its_request_that_it_may_send_it(server: Server) -> None:
    head = f"OPTIONS /x HTTP/1.1\r\nOrigin: {DESK}\r\nAccess-Control-Request-Method: POST"
    status, found = headers(server, head)

    assert (status, found["access-control-allow-origin"]) == (204, DESK)
    assert "POST" in found["access-control-allow-methods"]
    assert {"x-api-key", "authorization", "idempotency-key"} <= set(
        found["access-control-allow-headers"].replace(" ", "").split(",")
    )


@pytest.mark.parametrize(
    "origin", ["https://desk.example.evil", "https://evil", "null", "http://desk.example", DESK + "/"]
)
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_a_page_of_another_origin_may_not(server: Server, origin: str, method: str) -> None:
    head = f"{method} /x HTTP/1.1\r\nOrigin: {origin}\r\nAccess-Control-Request-Method: POST"

    assert headers(server, head)[1] == {"vary": "Origin"}


def test_without_configured_origins_nothing_is_said_to_browsers(closed_server: Server) -> None:
    head = f"OPTIONS /x HTTP/1.1\r\nOrigin: {DESK}\r\nAccess-Control-Request-Method: POST"

    assert headers(closed_server, head) == (200, {}), "the app answers, as if it were any method"


NO_ORIGINS = (
    *("*", "https://*.example", "desk.example", "https://desk.example/", "ftp://desk"),
    *(
        "https://Desk.example",
        "HTTPS://desk.example",
        "https://desk.example:443",
        "https://desk.example:0443",
        "http://desk.example:80",
    ),
)


@pytest.mark.parametrize("given", NO_ORIGINS)
def test_an_origin_is_given_as_browsers_send_it(given: str) -> None:
    with pytest.raises(BadConfiguration, match="CORS_ORIGINS"):
        ServiceConfig.from_env({**REQUIRED, "CORS_ORIGINS": given})


@pytest.mark.parametrize("port", ["", ":80", ":4430", ":5173"])
def test_an_origin_may_have_a_port(port: str) -> None:
    given = f"https://desk.example{port}"

    config = ServiceConfig.from_env({**REQUIRED, "CORS_ORIGINS": f"{given}, http://127.0.0.1:443"})

    assert config.cors_origins == (given, "http://127.0.0.1:443")
