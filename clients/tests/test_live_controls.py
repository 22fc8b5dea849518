"""Controls and limits by `tip`, on a whole platform."""

from decimal import Decimal

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

import tip_client
from tip import limits
from tip_client.limits import AccountLimitValues, SymbolLimitValues
from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")


def used(tip: TipCaller) -> dict[str, dict[str, object]]:
    """How much is used, of the account and of each symbol."""
    return {found["limits"].get("symbol", "account"): found["used"] for found in tip.json("limits")["data"]}


def test_a_symbol_is_disabled_enabled_and_removed(tip: TipCaller, admin: TipCaller, symbol: str) -> None:
    assert tip.done("controls", "disable", symbol, "--reason", "earnings") == f"✓ {symbol} is disabled: earnings (v1)\n"
    assert "SYMBOL_DISABLED" in tip("buy", symbol, "1").stderr
    shown = tip.done("controls").splitlines()
    assert shown[:2] == ["account is ACTIVE", "organization is ACTIVE"]
    assert shown[3].split() == [symbol, "disabled", "-", "-", "-", "earnings"]
    assert not tip.json("controls", "enable", symbol)["manually_disabled"]
    assert tip.done("buy", symbol, "1", *WAIT).startswith("✓ FILLED")

    assert tip.json("controls", "remove", symbol) == {"symbol": symbol, "removed": ["manual"]}

    assert tip("controls", "remove", symbol).exit_code == 1
    assert tip.json("controls", "list")["data"] == []
    changes = tip.json("controls", "history", "--symbol", symbol)["data"]
    assert [change["to"] is None for change in changes] == [True, False, False]
    text = admin.done("controls", "history").splitlines()
    assert "key paper key" in text[1] and "manually_disabled True, manual_reason earnings" in text[1]
    assert text[3].split()[-2:] == ["removed", changes[0]["request_id"][:8]]


def test_trading_hours_are_set_and_cleared(tip: TipCaller, symbol: str) -> None:
    made = tip.json("controls", "hours", symbol, "--start", "09:30", "--end", "16:00:30", "--stale-after", "60s")
    assert (made["trading_start"], made["trading_end"], made["stale_order_millis"]) == ("09:30:00", "16:00:30", 60_000)
    assert f"09:30 to 16:00:30 {made['time_zone']}" in tip.done("controls")

    cleared = tip.json("controls", "hours", symbol, "--clear", "end", "--clear", "stale-after")

    assert "trading_end" not in cleared and cleared["stale_order_millis"] is None
    line = tip.done("controls", "hours", symbol, "--stale-after", "2m")
    assert line.startswith(f"✓ {symbol} is traded 09:30 to 24:00 ") and "stale after 2 min (v3)" in line
    assert tip.json("controls", "remove", symbol, "--only", "hours")["removed"] == ["hours"]


def test_a_state_of_the_account_is_listed_with_the_controls(tip: TipCaller) -> None:
    tip.done("halt", "--reason", "loss")

    assert tip.done("controls").splitlines()[0] == "account is HALTED: loss"
    assert tip.json("controls")["account"]["trading_state"] == "HALTED"


def test_setting_a_limit_keeps_the_others(tip: TipCaller, symbol: str) -> None:
    tip.done("limits", "set", "--max-quantity", "100", "--denied-symbols", "GME,AMC", "--no-allow-short")

    changed = tip.json("limits", "set", "--max-orders-per-minute", "7", "--max-quantity", "50.5")

    assert (changed["max_quantity"], changed["max_orders_per_minute"]) == ("50.5", 7)
    assert (changed["denied_symbols"], changed["allow_short"], changed["version"]) == (["AMC", "GME"], False, 2)
    assert "QUANTITY_ABOVE_LIMIT" in tip("buy", symbol, "51").stderr
    left = tip.json("limits", "remove", "max_quantity", "denied_symbols", "allow_short")
    assert (left["max_quantity"], left["denied_symbols"], left["max_orders_per_minute"]) == (None, None, 7)
    assert tip("limits", "remove", "max_quantity").exit_code == 1
    assert tip.json("limits", "remove") == {"symbol": None, "removed": ["max_orders_per_minute"]}
    assert tip.done("limits") == "no limits\n"


def test_limits_show_how_much_of_them_is_used(tip: TipCaller, symbol: str) -> None:
    tip.done("buy", symbol, "2", *WAIT)
    tip.done("buy", "SIM.OPEN", "3", "--limit", "1")
    eventually(lambda: tip.json("positions")["data"])
    tip.done("limits", "set", "--max-open-orders", "4", "--max-orders-per-day", "10", "--max-quantity", "9")
    tip.done("limits", "set", "--symbol", symbol, "--max-position-quantity", "8", "--max-open-orders", "2")
    tip.done("limits", "set", "--symbol", "SIM.OPEN", "--max-position-quantity", "6")

    assert used(tip) == {
        "account": {"max_open_orders": 1, "max_orders_per_day": 2},
        symbol: {"max_position_quantity": "2", "max_open_orders": 0},
        "SIM.OPEN": {"max_position_quantity": "3"},
    }
    rows = [line.split() for line in tip.done("limits", "show").splitlines()]
    assert rows[0] == ["FOR", "LIMIT", "VALUE", "USED"]
    assert ["account", "max_open_orders", "4", "1", "(25", "%)"] in rows and [
        "account",
        "max_quantity",
        "9",
        "-",
    ] in rows
    assert [symbol, "max_position_quantity", "8", "2", "(25", "%)"] in rows
    assert len(tip.json("limits", "show", "--symbol", symbol.lower())["data"]) == 1


def test_exposure_and_loss_are_shown_as_used(tip: TipCaller, client: tip_client.Client, symbol: str) -> None:
    tip.done("buy", symbol, "2", *WAIT)
    eventually(lambda: client.balances().equity)
    tip.done("limits", "set", "--max-gross-exposure", "1000000", "--max-daily-loss", "1000000")

    found = eventually(lambda: found if (found := used(tip)["account"])["max_gross_exposure"] else None)

    assert Decimal(found["max_gross_exposure"]) > 0
    assert eventually(lambda: used(tip)["account"]["max_daily_loss"]) is not None


def test_every_limit_of_the_api_can_be_set() -> None:
    assert set(limits.NAMES) == AccountLimitValues.__annotations__.keys()
    assert set(limits.NAMES) - limits.OF_ACCOUNTS == SymbolLimitValues.__annotations__.keys()


@pytest.mark.parametrize(
    "words",
    [
        ("limits", "set"), ("limits", "set", "--max-quantity", "0"), ("limits", "remove", "max_nonsense"),
        ("limits", "set", "--symbol", "AAPL", "--max-daily-loss", "1"), ("limits", "set", "--symbol", ""),
        ("controls", "hours", "AAPL"), ("controls", "hours", "AAPL", "--start", "25:00"),
        ("controls", "hours", "AAPL", "--stale-after", "0s"), ("controls", "disable", ""),
        ("controls", "history", "--organization", "--symbol", "AAPL"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_says_too_little_changes_nothing(tip: TipCaller, words: tuple[str, ...]) -> None:
    assert tip(*words).exit_code == 2
    assert tip.json("controls", "history") == {"data": []}


def test_live_accounts_ask_before_their_controls_change(caller, whole_platform: Platform, symbol: str) -> None:
    live = caller("demo-admin", account=whole_platform.account(environment="live"))

    for words in (
        ("controls", "disable", symbol), ("controls", "enable", symbol), ("controls", "remove", symbol),
        ("controls", "hours", symbol, "--start", "09:30"), ("limits", "set", "--max-quantity", "1"),
        ("limits", "remove"),
    ):  # fmt: skip
        refused = live(*words)
        assert refused.exit_code == 2 and "live account " in refused.stderr and "--yes" in refused.stderr

    assert live.json("controls", "disable", symbol, "--yes")["manually_disabled"]
    assert live.json("controls", "remove", symbol, "--yes")["removed"] == ["manual"]
