"""Parts of `tip broker check` that need no process: where it connects, what it hides, what it forbids."""

import subprocess
import sys

import pytest

from tip_brokers import find
from tip_testing.broker_check.addresses import sandbox_settings
from tip_testing.broker_check.credentials import without_secrets
from tip_testing.broker_check.errors import CannotCheck

LIVE = "https://api.alpaca.markets"


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("ccxt:binance", {"CCXT_ADDRESSES": "binance=https://api.binance.com"}),
        ("alpaca", {"ALPACA_PAPER_URL": LIVE}),
        ("alpaca", {"ALPACA_PAPER_URL": f"{LIVE}:443"}),
        ("alpaca", {"ALPACA_PAPER_URL": "http://API.alpaca.markets./v2"}),
        ("alpaca", {"ALPACA_PAPER_URL": "https://name@api.alpaca.markets"}),
        ("alpaca", {"ALPACA_PAPER_URL": LIVE, "ALPACA_LIVE_URL": "https://gateway.example"}),
        ("alpaca", {"ALPACA_PAPER_URL": "https://gateway.example", "ALPACA_LIVE_URL": "https://gateway.example"}),
        ("alpaca", {"ALPACA_DATA_URL": "https://gateway.example"}),
        ("alpaca", {"ALPACA_PAPER_URL": "https://gateway.example:port"}),
        ("fix", {"FIX_PAPER_URL": "http://g:1,http://127.0.0.1:8084"}),
        ("fix", {"FIX_PAPER_URL": "http://localhost:8084"}),
        ("fix", {"FIX_PAPER_URL": "http://[::1]:8084"}),
    ],
)
def test_what_may_be_live_is_refused(name: str, environment: dict[str, str]) -> None:
    with pytest.raises(CannotCheck):
        sandbox_settings(find(name), environment)


@pytest.mark.parametrize(
    ("name", "environment"),
    [
        ("ccxt:binance", {}),
        ("alpaca", {"ALPACA_PAPER_URL": "https://gateway.example"}),
        ("alpaca", {"ALPACA_DATA_URL": "https://data.alpaca.markets"}),
        ("fix", {"FIX_PAPER_URL": "http://g:1,http://g:2", "FIX_LIVE_URL": "http://g:3"}),
        ("paper", {"PAPER_BROKER_URL": "http://127.0.0.1:8084"}),
    ],
)
def test_other_addresses_of_a_sandbox_are_taken(name: str, environment: dict[str, str]) -> None:
    assert sandbox_settings(find(name), environment).items() >= environment.items()


PEM = "-----BEGIN KEY-----\nfirst-line-of-it\nsecond-line-of-it\n-----END KEY-----\n"


@pytest.mark.parametrize(
    "said",
    [
        PEM,
        repr(PEM),
        " ".join(PEM.split()),
        f"about {PEM.splitlines()[1]}",
        repr({"key": PEM}),
        PEM.replace("\n", "\r\n"),
    ],
)
def test_a_value_with_line_breaks_is_hidden_in_every_form(said: str) -> None:
    shown = without_secrets(f"before {said} after", {"secret": PEM, "empty": ""})

    assert "line-of-it" not in shown
    assert shown.startswith("before ") and shown.endswith(" after")


SENDS = {
    "connect": "socket.socket().connect(('192.0.2.1', 9))",
    "sendto": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    "sendmsg": "socket.socket(type=socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('192.0.2.1', 9))",
    "getaddrinfo": "socket.getaddrinfo('a-secret.example', 80)",
}


@pytest.mark.parametrize("way", SENDS)
def test_offline_no_socket_of_pythons_reaches_another_machine(way: str) -> None:
    assert "OSError: offline: " in _after_forbidding(SENDS[way])


def test_offline_this_machine_is_reached() -> None:
    there = "one, two = socket.socketpair(); one.sendmsg([b'x']); socket.getaddrinfo('localhost', 80)"

    assert _after_forbidding(f"{there}; socket.getaddrinfo(None, 80); socket.getaddrinfo(b'127.0.0.1', 80)") == ""


def _after_forbidding(code: str) -> str:
    forbid = "from tip_testing.broker_check.offline import forbid_connections_beyond_loopback as forbid; forbid()"
    command = [sys.executable, "-c", f"import socket; {forbid}; {code}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr
