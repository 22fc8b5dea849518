"""`tip mcp` with the official client of the protocol over standard input and output, on a whole platform."""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sdk_platform import Platform
from tip_caller import NONE_OF_MINE, TipCaller

from tip_client.models.identity import KeyBounds

pytest.importorskip("mcp", reason="the extra mcp is not installed")
from mcp import ClientSession, StdioServerParameters, stdio_client

READS = {"accounts", "positions", "balances", "quote", "orders", "show", "limits", "controls", "preview"}
WRITES = {"submit", "replace", "cancel"}
PERMISSIONS = ("intent:read", "intent:edit", "account:read", "control:read")
Play = Callable[[ClientSession], Awaitable[Any]]


class Agent:
    """Speaks to a server of its own, started for each conversation."""

    def __init__(self, platform: Platform, folder: Path, key: str, account: str) -> None:
        none_of_mine = {name: value for name, value in os.environ.items() if name not in NONE_OF_MINE}
        caller = {"TIP_URL": platform.local["base_url"], "TIP_KEY": key, "TIP_ACCOUNT": account}
        self.environment = {**none_of_mine, **caller, "XDG_CONFIG_HOME": str(folder), "TIP_HOME": str(folder)}

    def converse(self, play: Play, *words: str) -> Any:
        command = ["-m", "tip.cli", "mcp", *words]
        server = StdioServerParameters(command=sys.executable, args=command, env=self.environment)

        async def conversation() -> Any:
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                return await play(session)

        return asyncio.run(asyncio.wait_for(conversation(), 120))


async def call(session: ClientSession, tool: str, **arguments: Any) -> Any:
    """What the tool answers; its error, under `error`."""
    result = await session.call_tool(tool, arguments)
    text = getattr(result.content[0], "text", "")
    return {"error": json.loads(text) if text.startswith("{") else text} if result.is_error else json.loads(text)


def limit(symbol: str, quantity: str, price: str = "10") -> dict[str, str]:
    """One that rests: no symbol opens below 20."""
    return {"kind": "Limit", "symbol": symbol, "side": "BUY", "quantity": quantity, "limit_price": price}


@pytest.fixture
def agent(whole_platform: Platform, own_account: str, symbol: str, tmp_path: Path) -> Agent:
    """With a key for one account and one symbol, a budget of 1000 and a week to live."""
    bounds = KeyBounds((own_account,), (symbol,), Decimal(1000))
    with whole_platform.admin() as admin:
        made = admin.keys.create("agent", environment="paper", permissions=PERMISSIONS, bounds=bounds,
                                 expires_at=datetime.now(UTC) + timedelta(days=7))  # fmt: skip
    return Agent(whole_platform, tmp_path, made.key, own_account)


def test_an_agent_trades_until_its_budget_refuses_it(agent: Agent, own_account: str, symbol: str) -> None:
    async def play(session: ClientSession) -> dict[str, Any]:
        answers = {
            "accounts": await call(session, "accounts"),
            "limits": await call(session, "limits"),
            "preview": await call(session, "preview", order=limit(symbol, "90")),
            "first": await call(session, "submit", order=limit(symbol, "90")),
            "second": await call(session, "submit", order=limit(symbol, "20")),
            "other symbol": await call(session, "submit", order=limit("MSFT", "1")),
        }
        intent_id = answers["first"]["intent_id"]
        answers["replaced"] = await call(session, "replace", intent_id=intent_id, quantity="100")
        answers["dearer"] = await call(session, "preview", order=limit(symbol, "1"))
        answers["orders"] = await call(session, "orders", status="open")
        answers["shown"] = await call(session, "show", intent_id=intent_id)
        answers["canceled"] = await call(session, "cancel", intent_id=intent_id)
        return answers

    found = agent.converse(play)

    assert [account["id"] for account in found["accounts"]] == [own_account]
    assert found["limits"]["key_bounds"]["max_notional_per_day"] == "1000"
    assert found["preview"]["controls"]["decision"] == "ALLOWED"
    assert found["first"]["idempotency_key"]
    refused = found["second"]["error"]
    assert (refused["code"], refused["reasons"][0]["code"]) == ("control_rejected", "KEY_NOTIONAL_ABOVE_LIMIT")
    assert "1100, of 1000: 900 are spent" in refused["message"] and "budget of this key" in refused["hint"]
    assert found["other symbol"]["error"]["reasons"][0]["code"] == "KEY_SYMBOL_NOT_ALLOWED"
    assert "error" not in found["replaced"] or found["replaced"]["error"]["code"] == "intent_busy"
    assert [order["intent_id"] for order in found["orders"]] == [found["first"]["intent_id"]]
    assert found["shown"][0]["kind"] and "error" not in found["canceled"]


def test_tools_say_what_they_do_and_read_only_has_none_that_trades(agent: Agent) -> None:
    async def tools(session: ClientSession) -> dict[str, Any]:
        return {tool.name: tool for tool in (await session.list_tools()).tools}

    all_tools, reading = agent.converse(tools), agent.converse(tools, "--read-only")

    assert set(all_tools) == READS | WRITES and set(reading) == READS
    assert {name for name, tool in all_tools.items() if tool.annotations.read_only_hint} == READS
    kinds = json.dumps(all_tools["submit"].input_schema)
    assert all(kind in kinds for kind in ("MarketOrder", "LimitOrder", "StopOrder", "StopLimitOrder"))


def test_a_call_that_is_repeated_with_its_key_is_done_once(agent: Agent, symbol: str) -> None:
    async def play(session: ClientSession) -> list[Any]:
        first = await call(session, "submit", order=limit(symbol, "1"))
        again = await call(session, "submit", order=limit(symbol, "1"), idempotency_key=first["idempotency_key"])
        return [first["intent_id"], again["intent_id"], await call(session, "orders")]

    first, again, orders = agent.converse(play)

    assert first == again and len(orders) == 1


def test_input_that_is_no_order_is_refused_before_it_is_sent(agent: Agent, symbol: str) -> None:
    async def play(session: ClientSession) -> list[Any]:
        without_price = {"kind": "Limit", "symbol": symbol, "side": "BUY", "quantity": "1"}
        more = {**limit(symbol, "1"), "stop_price": "1"}
        wrong = [without_price, more, limit(symbol, "-1"), {**limit(symbol, "1"), "kind": "Iceberg"}]
        return [await call(session, "submit", order=order) for order in wrong]

    assert all("error" in answer for answer in agent.converse(play))


def test_on_live_accounts_it_starts_with_a_bounded_key_only(
    whole_platform: Platform, caller: Any, tmp_path: Path
) -> None:
    live = caller("demo-live")
    refused = live("mcp")

    assert refused.exit_code == 1
    assert "no bound to accounts or symbols, no budget (max_notional_per_day), no expiry" in refused.stderr
    assert "tip keys create agent" in refused.stderr
    with whole_platform.admin() as admin:
        account = whole_platform.local["organizations"]["acme"]["accounts"]["live"]
        terms: dict[str, Any] = {"environment": "live", "permissions": PERMISSIONS}
        bounds = KeyBounds((account,), None, Decimal(1000))
        endless = admin.keys.create("endless", **terms, bounds=bounds)
        bounded = admin.keys.create("agent", **terms, bounds=bounds, expires_at=datetime.now(UTC) + timedelta(days=1))

    url = whole_platform.local["base_url"]
    no_end = TipCaller({"TIP_URL": url, "TIP_KEY": endless.key, "TIP_ACCOUNT": account, "TIP_HOME": str(tmp_path)})
    assert "has no expiry" in no_end("mcp").stderr

    async def accounts(session: ClientSession) -> Any:
        return await call(session, "accounts")

    seen = Agent(whole_platform, tmp_path, bounded.key, account).converse(accounts)
    assert [found["id"] for found in seen] == [account]
