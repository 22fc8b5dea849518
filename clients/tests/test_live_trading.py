"""Trading by `tip`, on a whole platform."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from select import select

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

import tip_client
from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")


def test_an_order_is_bought_and_waited_for(tip: TipCaller, symbol: str) -> None:
    line = tip.done("buy", symbol, "1", "--limit", "100000", *WAIT)

    assert line.startswith(f"✓ FILLED 1 {symbol} @ ")
    assert "   intent " in line and "   trace " in line and (" s   " in line or " ms   " in line)


def test_an_order_as_json_is_the_order_of_the_api(tip: TipCaller, symbol: str, client: tip_client.Client) -> None:
    made = tip.json("buy", symbol, "1.5", "--client-id", f"c-{symbol}", "--tag", "alpha", "--tag", "beta", *WAIT)

    order = client.order(made["intent_id"])
    assert (made["state"]["status"], made["spec"]["Market"]["quantity"]) == ("FILLED", "1.5")
    assert (order.client_id, order.tags, order.order_side) == (f"c-{symbol}", ("alpha", "beta"), "BUY")
    [listed] = tip.json("orders")["data"]
    assert listed["intent_id"] == made["intent_id"] and listed["state"] == made["state"]


def test_an_order_that_goes_on_is_exit_code_4(tip: TipCaller) -> None:
    answer = tip("buy", "SIM.OPEN", "1", "--limit", "1", "--wait", "--timeout", "0.2", "--json")

    made, error = json.loads(answer.stdout), json.loads(answer.stderr)["error"]
    assert (answer.exit_code, error["code"], error["intent_id"]) == (4, "timeout", made["intent_id"])
    assert f"tip cancel {made['intent_id'][:8]}" in error["hint"]


def test_a_refused_order_is_exit_code_1_with_reason_and_request(
    tip: TipCaller, admin: TipCaller, client: tip_client.Client, symbol: str
) -> None:
    client.controls.set_limits(max_quantity=100)
    client.controls.disable_symbol(symbol, reason="earnings tonight")

    refused = tip("buy", symbol, "500")

    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "earnings tonight" in refused.stderr and "QUANTITY_ABOVE_LIMIT" in refused.stderr
    request = refused.stderr.split("request ")[1].strip()
    rows = tip.done("refusals", "--since", "1h").splitlines()
    assert rows[0].split() == ["TIME", "WHO", "SYMBOL", "ORDER", "CODE", "WHY", "REQUEST"]
    assert all(row.endswith(request[:8]) and "BUY 500" in row for row in rows[1:]) and len(rows) == 3
    found = tip.json("refusals", "--code", "SYMBOL_DISABLED")["data"]
    assert [refusal["request_id"] for refusal in found] == [request]
    assert tip.json("refusals", "--symbol", "OTHER") == {"data": []}
    assert "paper key" in admin.done("refusals")  # an admin may know the names of keys


def test_the_same_idempotency_key_orders_once(tip: TipCaller, symbol: str) -> None:
    key = ("--idempotency-key", f"once-{symbol}")

    first, second = (tip.json("buy", symbol, "1", *key)["intent_id"] for _ in range(2))

    assert first == second and len(tip.json("orders")["data"]) == 1


def test_an_order_is_shown_by_the_beginning_of_its_id(tip: TipCaller, symbol: str) -> None:
    made = tip.json("buy", symbol, "1", *WAIT)

    lines = eventually(lambda: shown if "  fill " in (shown := tip.done("show", made["intent_id"][:8])) else None)

    words = [line.split()[1] for line in lines.splitlines()[1:]]
    assert words[:2] == ["submitted", "allowed"] and {"called", "accepted", "filled", "fill"} <= set(words)
    document = tip.json("show", made["intent_id"])
    assert document["order"]["intent_id"] == made["intent_id"]
    assert document["timeline"][0]["kind"] == "COMMAND"


def test_an_unknown_order_is_exit_code_1(tip: TipCaller) -> None:
    assert tip("show", "ffffffff").exit_code == 1
    unknown = tip("show", "93327def-0000-4000-8000-000000000001", "--json")
    assert (unknown.exit_code, json.loads(unknown.stderr)["error"]["code"]) == (1, "not_found")


def test_an_open_order_is_replaced_and_canceled(tip: TipCaller) -> None:
    made = tip.json("buy", "SIM.OPEN", "2", "--limit", "1")["intent_id"]
    eventually(lambda: tip.json("orders", "--status", "ACCEPTED")["data"])

    replaced = tip.json("replace", made[:8], "--limit", "2", "--quantity", "3")
    assert replaced["spec"]["Limit"] == {"quantity": "3", "limit_price": "2", "time_in_force": "DAY"}
    eventually(lambda: tip.json("orders", "--status", "ACCEPTED")["data"])
    canceled = tip.done("cancel", made, *WAIT)

    assert canceled.startswith("✓ CANCELED 3 SIM.OPEN")
    ended = tip("cancel", made)
    assert ended.exit_code == 1 and "the order has ended" in ended.stderr


def test_all_open_orders_are_canceled(tip: TipCaller) -> None:
    for limit in ("1", "2"):
        tip.done("buy", "SIM.OPEN", "1", "--limit", limit)

    assert tip.json("cancel", "--all", "--side", "SELL", *WAIT)["total"] == 0
    assert tip.done("cancel", "--all", "--reason", "end of day", *WAIT).startswith("✓ COMPLETED 2 of 2 orders ended")
    assert tip.done("orders", "--open") == "no orders\n"


def test_a_position_is_listed_and_closed(tip: TipCaller, symbol: str) -> None:
    tip.done("buy", symbol, "2", *WAIT)
    eventually(lambda: symbol in tip.done("positions"))
    assert eventually(lambda: tip.json("balances")["equity"])
    assert tip.done("balances").split()[:2] == ["CURRENCY", "CASH"]
    [quoted] = eventually(lambda: tip.json("quote", symbol)["data"])
    assert quoted["symbol"] == symbol and symbol in tip.done("quote", symbol)

    closed = tip.json("close", symbol, *WAIT)

    assert (closed["status"], closed["refusals"]) == ("COMPLETED", [])
    eventually(lambda: all(held["quantity"] == "0" for held in tip.json("positions", "--refresh")["data"]))


Follow = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def follow(whole_platform: Platform, own_account: str, tmp_path: Path) -> Follow:
    """`tip orders --follow --json` in a process of its own."""
    environment = {"TIP_HOME": str(whole_platform.home), "XDG_CONFIG_HOME": str(tmp_path), "TIP_ACCOUNT": own_account}
    words = [sys.executable, "-m", "tip.cli", "--profile", "demo", "orders", "--follow", "--json"]
    return lambda: subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)


def test_orders_are_followed_as_they_happen(follow: Follow, tip: TipCaller, symbol: str) -> None:
    before = tip.json("buy", symbol, "1", *WAIT)["intent_id"]
    with follow() as following:
        assert following.stdout is not None
        lines = iter(following.stdout)
        seen = [json.loads(next(lines))]  # of the order before: the follower is there
        made = tip.json("buy", symbol, "2")["intent_id"]
        while (seen[-1]["event"], seen[-1].get("status")) != ("BROKER_ORDER", "FILLED") or seen[-1]["quantity"] != "2":
            seen.append(json.loads(next(lines)))
        following.send_signal(signal.SIGINT)

    assert following.returncode == 0
    assert {event["intent_id"] for event in seen} == {before, made}
    assert next(event for event in seen if event["intent_id"] == made)["event"] == "INTENT_ACTION"


def test_an_account_without_orders_is_followed_from_now_until_nobody_reads(
    follow: Follow, tip: TipCaller, symbol: str, client: tip_client.Client
) -> None:
    tip.done("halt")
    assert tip("buy", symbol, "1").exit_code == 1
    tip.done("resume")
    with client.events(after=0, types=(tip_client.Refusal,)) as events:
        next(events)  # it is of the past once it is in the log

    with follow() as following:
        assert following.stdout is not None
        stdout = following.stdout
        eventually(
            lambda: tip.done("buy", symbol, "1") and select([stdout], [], [], 0.5)[0]
        )  # it says not when it is there
        first = json.loads(stdout.readline())
        stdout.close()
        eventually(lambda: tip.done("buy", symbol, "1") and following.poll() is not None)

    assert first["event"] != "REFUSAL" and following.returncode == 0


def test_a_live_account_asks_before_it_is_closed(caller, whole_platform: Platform) -> None:
    live = caller("demo-live")

    asking = (("close", "--all"), ("cancel", "--all"), ("halt",), ("resume",))
    for words in (*asking, ("halt", "--organization"), ("resume", "--organization")):
        refused = live(*words)
        assert refused.exit_code == 2 and "--yes" in refused.stderr
        assert ("live account " in refused.stderr) == (words in asking)

    assert live.json("cancel", "--all", "--symbol", "NONE", "--yes")["total"] == 0


@pytest.mark.parametrize("account", ["name", "prefix"])
def test_an_account_is_named_or_begun(
    tip: TipCaller, client: tip_client.Client, own_account: str, account: str
) -> None:
    name = client.accounts.read(own_account).name

    answer = tip("balances", "--json", "--account", name if account == "name" else own_account[:13])

    assert json.loads(answer.stdout)["account_id"] == own_account
    assert tip("balances", "--account", "no such account").exit_code == 2
