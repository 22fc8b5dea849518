"""What `tip --json` prints is the record that the API's document describes."""

from collections.abc import Callable
from typing import Any

import httpx
import jsonschema_rs
import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.waiting import eventually

Check = Callable[[str, Any], None]


@pytest.fixture(scope="module")
def is_a(whole_platform: Platform) -> Check:
    """Raises where a value is not as the schema of that name says, or has fewer fields."""
    document = httpx.get(f"{whole_platform.local['base_url']}/openapi.json", timeout=60).json()

    def check(schema: str, value: Any) -> None:
        described = {"$ref": f"#/components/schemas/{schema}", "components": document["components"]}
        jsonschema_rs.validator_for(described).validate(value)
        known = document["components"]["schemas"][schema]
        assert set(known.get("required", ())) <= set(value) <= set(known["properties"])

    return check


def test_documents_of_administration_are_those_of_the_api(tip: TipCaller, admin: TipCaller, is_a: Check) -> None:
    is_a("Account", tip.json("accounts", "show"))
    is_a("Broker", tip.json("broker", "list")["data"][0])
    secret = '{"key_id": "K1", "secret_key": "of-nobody-at-all"}'
    is_a("Credential", admin.json("credentials", "add", "first", stdin=secret))
    created = admin.json("keys", "create", "json", "--environment", "paper", "--permission", "intent:read")
    is_a("CreatedApiKey", created)
    is_a("ApiKey", admin.json("keys", "disable", created["id"]))
    is_a("Member", admin.json("people")["data"][0])
    is_a("OutboxHealthResponse", admin.json("outbox", "health"))
    admin.done("keys", "delete", created["id"])


def test_documents_of_controls_are_those_of_the_api(tip: TipCaller, is_a: Check, symbol: str) -> None:
    is_a("SymbolManualControl", tip.json("controls", "disable", symbol))
    is_a("SymbolTimeControl", tip.json("controls", "hours", symbol, "--stale-after", "60s"))
    is_a("SymbolLimits", tip.json("limits", "set", "--symbol", symbol, "--max-quantity", "1.5"))
    is_a("AccountLimits", tip.json("limits", "set", "--max-open-orders", "5"))
    is_a("AccountSwitch", tip.json("halt"))
    listed = tip.json("controls")
    is_a("AccountSwitch", listed["account"])
    is_a("SymbolControls", listed["data"][0])
    is_a("SymbolLimits", tip.json("limits", "show", "--symbol", symbol)["data"][0]["limits"])
    is_a("ControlChange", tip.json("controls", "history")["data"][0])


def test_documents_are_those_of_the_api(tip: TipCaller, is_a: Check, symbol: str) -> None:
    bought = tip.json("buy", symbol, "1", "--wait", "--timeout", "90")
    is_a("Order", bought)
    is_a("Order", tip.json("orders")["data"][0])
    shown = eventually(lambda: found if len((found := tip.json("show", bought["intent_id"]))["timeline"]) > 3 else None)
    is_a("Order", shown["order"])
    for entry in shown["timeline"]:
        is_a("TimelineRecord", entry)
    is_a("Position", eventually(lambda: tip.json("positions")["data"])[0])
    is_a("Balances", tip.json("balances"))
    is_a("Quote", tip.json("quote", symbol)["data"][0])
    is_a("BulkOperation", tip.json("cancel", "--all"))
    is_a("AccountSwitch", tip.json("halt", "--reason", "test"))
    assert tip("buy", symbol, "1").exit_code == 1
    is_a("Refusal", tip.json("refusals")["data"][0])
    is_a("Verification", tip.json("verify", "--online"))
    is_a("AccountSwitch", tip.json("resume"))
    is_a("PreviewAnswer", tip.json("preview", "buy", symbol, "1"))
