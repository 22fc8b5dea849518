"""Who may move the market, and who is let go: /sim is the operator's, and nobody may be slow for ever."""

import socket
import time

import pytest
import requests

from .conftest import OPERATOR, TOKEN

SIM = [
    ("GET", "/sim/quotes/AAPL"),
    ("PUT", "/sim/quotes/AAPL"),
    ("DELETE", "/sim/quotes/AAPL"),
    ("POST", "/sim/ticks"),
    ("GET", "/sim/faults"),
    ("PUT", "/sim/faults"),
    ("GET", "/sim/ledger"),
    ("GET", "/sim/ledger/positions"),
    ("GET", "/sim/ledger/summary"),
]
STRANGERS = {
    "nobody": {},
    "an account": {"APCA-API-KEY-ID": "key", "APCA-API-SECRET-KEY": "secret"},
    "a wrong token": {"Authorization": f"Bearer {TOKEN}x"},
    "no token": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": f"Basic {TOKEN}"},
    "not ASCII": {"Authorization": "Bearer \u00e9".encode("latin-1")},
}


@pytest.mark.parametrize(("method", "path"), SIM, ids=[" ".join(request) for request in SIM])
@pytest.mark.parametrize("headers", STRANGERS.values(), ids=STRANGERS.keys())
def test_sim_is_closed_to_whoever_has_not_the_operators_token(shared_broker, method, path, headers):
    body = {"bid": "1", "ask": "2"} if method == "PUT" else None

    assert requests.request(method, shared_broker.url + path, headers=headers, json=body, timeout=60).status_code == 401


def test_without_a_token_sim_is_closed_to_everybody(start):
    broker = start(PAPER_BROKER_OPERATOR_TOKEN="")

    for headers in ({}, OPERATOR, {"Authorization": "Bearer "}, {"Authorization": "Bearer"}):
        assert requests.get(f"{broker.url}/sim/faults", headers=headers, timeout=60).status_code == 401
    assert broker.client().get_clock().is_open


def test_a_body_of_a_huge_length_is_refused_before_it_is_sent(shared_broker):
    with _connected(shared_broker) as line:
        line.sendall(
            b"POST /v2/orders HTTP/1.1\r\nHost: broker\r\nAPCA-API-KEY-ID: k\r\nAPCA-API-SECRET-KEY: s\r\n"
            b"Content-Length: 1000000000000\r\n\r\n"
        )
        assert line.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_headers_that_come_drop_by_drop_are_cut_off(shared_broker):
    with _connected(shared_broker) as line:
        line.sendall(b"GET /v2/clock HTTP/1.1\r\nX-Slow: ")
        line.settimeout(0.5)
        deadline = time.monotonic() + 60
        while not _has_ended(line):
            assert time.monotonic() < deadline
            line.sendall(b"x")


def _connected(broker) -> socket.socket:
    address, _, port = broker.url.removeprefix("http://").partition(":")
    return socket.create_connection((address, int(port)), timeout=60)


def _has_ended(line: socket.socket) -> bool:
    try:
        return line.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True
