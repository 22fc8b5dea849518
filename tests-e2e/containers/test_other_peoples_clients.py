"""Programs that nobody here wrote, against the running containers."""

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tip_testing.commands import create

PROTO = Path(__file__).resolve().parents[2] / "proto"
BUF = Path(sys.executable).with_name("buf")
QUEUE_URL = os.environ.get("QUEUE_URL", "")


def buf_curl(stack: Any, body: dict[str, Any], key: str) -> subprocess.Popen[str]:
    address = f"https://{stack.local['stream_target']}/trading.TradingService/SubscribeEvents"
    options = ["--protocol", "grpc", "--schema", str(PROTO), "--cacert", str(stack.ca), "--header", f"x-api-key: {key}"]
    return subprocess.Popen(
        [str(BUF), "curl", *options, "--data", json.dumps(body), address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_buf_curl_reads_a_filled_order_from_the_stream_through_tls(stack: Any) -> None:
    account = stack.account("acme")
    symbol = f"B{uuid4().hex[:8].upper()}"
    made = stack.key("acme")("POST", f"/v1/accounts/{account}/intents", create(symbol, "1"))
    assert made.status_code == 201

    wanted = {"tradingAccountId": account, "subscriptions": ["EVENT_TYPE_BROKER_ORDER"], "resumeAfterSequence": "0"}
    client = buf_curl(stack, wanted, stack.organization("acme")["api_keys"]["paper"])
    try:
        assert client.stdout is not None
        text, found = "", None
        while found is None:
            line = client.stdout.readline()
            assert line, f"the stream ended: {client.communicate()[1]}"
            text += line
            if line.startswith("}"):  # one event, printed over several lines
                event, text = json.loads(text), ""
                order = event.get("brokerOrder", {})
                if order.get("symbol") == symbol and order.get("status") == "FILLED":
                    found = order
    finally:
        client.kill()
        client.communicate()
    assert found["filledQuantity"] == "1"


def test_buf_curl_receives_the_reason_why_it_may_not_subscribe(stack: Any) -> None:
    wanted = {"tradingAccountId": stack.account("globex"), "subscriptions": ["EVENT_TYPE_BROKER_ORDER"]}

    foreign = buf_curl(stack, wanted, stack.organization("acme")["api_keys"]["paper"]).communicate(timeout=120)[1]
    unknown = buf_curl(stack, wanted, "tip_paper_nonsense").communicate(timeout=120)[1]

    assert json.loads(foreign)["code"] == "not_found"
    assert json.loads(unknown)["code"] == "unauthenticated"


def test_alpacas_own_client_trades_at_the_paper_broker(stack: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the SDK's own use of an older websockets API
        from alpaca.trading.client import TradingClient
        from alpaca.trading.enums import OrderSide, TimeInForce
        from alpaca.trading.requests import MarketOrderRequest

    client = TradingClient(uuid4().hex, uuid4().hex, url_override=stack.local["paper_broker_url"])
    wanted = MarketOrderRequest(symbol="AAPL", qty=2, side=OrderSide.BUY, time_in_force=TimeInForce.DAY)
    placed = client.submit_order(wanted)

    deadline = time.monotonic() + 60
    while (order := client.get_order_by_id(placed.id)).status != "filled" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert (order.status, order.filled_qty) == ("filled", "2")
    assert [position.symbol for position in client.get_all_positions()] == ["AAPL"]


in_rabbitmq = pytest.mark.skipif(
    "rabbitmq" not in QUEUE_URL, reason="the queues are in Redis in this run; QUEUE_URL chooses"
)


def rabbitmqctl(containers: Any, *arguments: str) -> str:
    code, output = containers.docker("rabbitmq")[0].exec_run(["rabbitmqctl", "--quiet", *arguments])
    assert code == 0, output
    return str(output.decode())


@in_rabbitmq
def test_queues_and_hints_are_in_rabbitmq_and_not_in_redis(containers: Any) -> None:
    _, keys = containers.docker("redis")[0].exec_run(
        ["sh", "-c", "REDISCLI_AUTH=$(cat /run/tip/redis/password) redis-cli --raw keys '*kombu*'"]
    )

    queues = rabbitmqctl(containers, "list_queues", "name", "consumers")
    assert "tip.intents" in queues and "tip-hints." in queues
    assert keys.decode().strip() == ""


@in_rabbitmq
def test_no_process_dies_of_a_broker_that_closes_every_connection(containers: Any, stack: Any) -> None:
    def restarts() -> dict[str, int]:
        return {container.name: container.attrs["RestartCount"] for container in containers.docker()}

    before = restarts()
    rabbitmqctl(containers, "close_all_connections", "maintenance")
    intents = f"/v1/accounts/{stack.account('acme')}/intents"
    made = stack.key("acme")("POST", intents, create("AAPL", "1")).json()

    deadline = time.monotonic() + 60
    while stack.key("acme")("GET", f"{intents}/{made['intent_id']}").json()["state"]["status"] != "FILLED":
        assert time.monotonic() < deadline, "not filled"
        time.sleep(0.2)
    assert restarts() == before
