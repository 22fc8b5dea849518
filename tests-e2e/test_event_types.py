"""Every type of event that the contract names has a source, and reaches whoever subscribes at the one address."""

import json
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import requests

TYPES = {
    f"EVENT_TYPE_{name}"
    for name in ("BROKER_ORDER", "BROKER_POSITION", "BROKER_TRADE", "INTENT_ACTION", "CONTROL", "ACCOUNT", "REFUSAL")
}

DISABLED = "SIM.REFUSED"
PAYLOADS = {name.removeprefix("EVENT_TYPE_").lower() for name in TYPES}


def events(answer: requests.Response) -> Iterator[dict[str, Any]]:
    for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_trading_and_administration_are_streamed_in_every_type(stack: Any) -> None:
    """The fill comes after the cancel. Another order stays open, so that the account is watched in any case: what the
    broker's stream does not report the position, because nobody listened yet, the next reconciliation does."""
    account, symbol = stack.account("acme"), "SIM.LATE_FILL"
    admin, trader = stack.user("acme"), stack.key("acme")
    address = f"{trader.base_url}/v1/accounts/{account}/events"

    def submit(kind: str, payload: dict[str, Any]) -> str:
        sent = trader("POST", f"/v1/accounts/{account}/intents", {"command": {"type": kind, "payload": payload}})
        assert sent.status_code == 201
        return str(sent.json()["intent_id"])

    with requests.get(address, headers=trader.headers, stream=True, timeout=60, verify=trader.verify) as stream:
        assert stream.status_code == 200
        allowed = admin("PUT", f"/v1/controls/accounts/{account}/symbols/{symbol}", {"manually_disabled": False})
        assert allowed.status_code in (200, 201)
        assert admin("PATCH", f"/v1/accounts/{account}", {"name": f"renamed {uuid4().hex[:8]}"}).status_code == 200
        market = {"order_side": "BUY", "spec": {"Market": {"quantity": "1"}}}
        refused = {"command": {"type": "CREATE", "payload": {"symbol": DISABLED, **market}}}
        admin("PUT", f"/v1/controls/accounts/{account}/symbols/{DISABLED}", {"manually_disabled": True})
        assert trader("POST", f"/v1/accounts/{account}/intents", refused).status_code == 422
        resting = submit("CREATE", {"symbol": "SIM.OPEN", **market})
        intent = submit("CREATE", {"symbol": symbol, **market})

        seen: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + 60
        for event in events(stream):
            if event["event_id"]:
                [payload] = event.keys() & PAYLOADS
                if (
                    event[payload].get("symbol") in (None, "", symbol) or payload == "refusal"
                ):  # an account may hold more
                    seen[event["type"]] = event[payload]
            order = event.get("broker_order", {})
            if (order.get("intent_id"), order.get("status")) == (intent, "ACCEPTED"):
                submit("CANCEL", {"ref_intent_id": intent})
            if seen.keys() == TYPES or time.monotonic() > deadline:  # heartbeats come all the same
                break

    submit("CANCEL", {"ref_intent_id": resting})
    assert seen.keys() == TYPES
    assert seen["EVENT_TYPE_REFUSAL"]["reasons"][0]["code"] == "SYMBOL_DISABLED"
    position = seen["EVENT_TYPE_BROKER_POSITION"]
    assert position["symbol"] == seen["EVENT_TYPE_BROKER_TRADE"]["symbol"] == symbol
    assert int(position["quantity"]) >= 1
