"""Halting, previewing and verifying by `tip`, on a whole platform."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")


def test_a_halt_cancels_open_orders_and_refuses_new_ones(tip: TipCaller, symbol: str) -> None:
    tip.done("buy", "SIM.OPEN", "1", "--limit", "1")

    halted = tip.done("halt", "--cancel-open", "--reason", "loss", *WAIT).splitlines()

    assert " is HALTED: loss (v1)   open orders are canceled: operation " in halted[0]
    assert halted[1].startswith("✓ COMPLETED 1 of 1 orders ended")
    refused = tip("buy", symbol, "1")
    assert refused.exit_code == 1 and "TRADING_HALTED" in refused.stderr
    assert tip.json("resume")["trading_state"] == "ACTIVE"
    assert tip.done("buy", symbol, "1", *WAIT).startswith("✓ FILLED")


def test_an_account_that_reduces_takes_what_reduces_a_position(tip: TipCaller, symbol: str) -> None:
    tip.done("buy", symbol, "2", *WAIT)

    assert tip.json("halt", "--reducing")["trading_state"] == "REDUCING"

    assert tip("buy", symbol, "1").exit_code == 1
    assert tip("sell", symbol, "1", *WAIT).exit_code == 0


def test_a_preview_says_whether_an_order_would_pass(tip: TipCaller, symbol: str) -> None:
    assert tip.done("preview", "buy", symbol, "500").startswith(f"✓ ALLOWED BUY 500 {symbol} market   ")
    tip.done("halt")

    refused, document = (
        tip("preview", "sell", symbol, "1", "--limit", "5"),
        tip("preview", "buy", symbol, "1", "--json"),
    )

    assert refused.exit_code == document.exit_code == 1
    assert refused.stdout.startswith(f"✗ REFUSED SELL 1 {symbol} limit 5") and "TRADING_HALTED" in refused.stdout
    assert json.loads(document.stdout)["decision"] == "REFUSED"
    assert tip.json("orders") == {"data": []}


def test_the_platform_verifies_its_log(tip: TipCaller, symbol: str, own_account: str) -> None:
    tip.done("buy", symbol, "1", *WAIT)

    found = tip.json("verify", "--online")
    assert found["valid"] and found["account_id"] == own_account and found["checked"] >= 1
    line = eventually(lambda: shown if "signed up to sequence" in (shown := tip.done("verify", "--online")) else None)
    assert line.startswith("✓ ")


def test_who_may_not_is_exit_code_1_and_learns_what_to_do(whole_platform: Platform, tip: TipCaller) -> None:
    key = whole_platform.local["organizations"]["acme"]["api_keys"]["paper_read_only"]
    url = whole_platform.local["base_url"]

    refused = tip("buy", "AAPL", "1", "--json", TIP_PROFILE="", TIP_URL=url, TIP_KEY=key)
    unknown = tip("balances", TIP_PROFILE="", TIP_URL=url, TIP_KEY="tip_paper_none")

    error = json.loads(refused.stderr)["error"]
    assert (refused.exit_code, error["status"]) == (1, 403) and error["request_id"]
    assert unknown.exit_code == 1 and "tip profiles add" in unknown.stderr


def test_a_key_of_the_demo_data_goes_to_no_other_address(tip: TipCaller) -> None:
    with other_server() as (url, requests):
        own = tip("balances", TIP_PROFILE="", TIP_URL=url, TIP_KEY="of the caller")
        demo = tip("balances", TIP_PROFILE="", TIP_URL=url)

    assert own.exit_code == demo.exit_code == 1
    keys, tokens = ([request.get(name) for request in requests] for name in ("x-api-key", "authorization"))
    assert (keys, tokens) == (["of the caller", None], [None, None])


@contextmanager
def other_server() -> Iterator[tuple[str, list[Message]]]:
    """A server that is not the platform, and the headers of the requests that it got."""
    requests: list[Message] = []

    class NotHere(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.headers)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), NotHere) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()
