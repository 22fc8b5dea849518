"""From a row of the submitting query to facts, so that whoever reads the views names columns and decides nothing."""

from collections.abc import Mapping
from typing import Any

from control_rules.facts import Facts, Limits, ManualControl, OrderCounts, Switch, TimeControl, TradingState

ACCOUNT_COLUMNS = ("time_zone", "account_disabled", "account_version")
"""The account's own; every query must select them."""

RULES_COLUMNS = (
    "organization_trading_state",
    "organization_reason",
    "organization_switch_version",
    "account_trading_state",
    "account_reason",
    "account_switch_version",
    "manually_disabled",
    "manual_reason",
    "symbol_manual_version",
    "trading_start",
    "trading_end",
    "stale_order_millis",
    "symbol_time_version",
    "account_max_quantity",
    "account_max_notional",
    "account_price_collar_bps",
    "account_max_orders_per_minute",
    "account_max_orders_per_day",
    "account_limits_version",
    "symbol_max_quantity",
    "symbol_max_notional",
    "symbol_price_collar_bps",
    "symbol_max_orders_per_minute",
    "symbol_max_orders_per_day",
    "symbol_limits_version",
)
"""The columns of `controls_api.rules(organization_id, account_id, symbol)`. A version that is NULL: not set."""

ORDER_COLUMNS = (
    "account_orders_last_minute",
    "account_orders_last_day",
    "symbol_orders_last_minute",
    "symbol_orders_last_day",
    "position_quantity",
    "open_quantity",
    "reference_price",
)
"""What the caller adds; a column that is absent or NULL is a fact that is not known."""


def facts_from_row(row: Mapping[str, Any]) -> Facts:
    """The facts in a row that has ACCOUNT_COLUMNS, RULES_COLUMNS and as many of ORDER_COLUMNS as are known."""
    return Facts(
        time_zone=row["time_zone"],
        account_disabled=row["account_disabled"],
        account_version=row["account_version"],
        organization_switch=_switch(row, "organization"),
        account_switch=_switch(row, "account"),
        symbol_manual=_manual(row),
        symbol_time=_time(row),
        account_limits=_limits(row, "account"),
        symbol_limits=_limits(row, "symbol"),
        account_orders=_orders(row, "account"),
        symbol_orders=_orders(row, "symbol"),
        position_quantity=row.get("position_quantity"),
        open_quantity=row.get("open_quantity"),
        reference_price=row.get("reference_price"),
    )


def _switch(row: Mapping[str, Any], of: str) -> Switch | None:
    version = row[f"{of}_switch_version"]
    if version is None:
        return None
    return Switch(TradingState(row[f"{of}_trading_state"]), version, row[f"{of}_reason"])


def _manual(row: Mapping[str, Any]) -> ManualControl | None:
    version = row["symbol_manual_version"]
    return None if version is None else ManualControl(row["manually_disabled"], version, row["manual_reason"])


def _time(row: Mapping[str, Any]) -> TimeControl | None:
    version = row["symbol_time_version"]
    if version is None:
        return None
    return TimeControl(version, row["trading_start"], row["trading_end"], row["stale_order_millis"])


def _limits(row: Mapping[str, Any], of: str) -> Limits | None:
    version = row[f"{of}_limits_version"]
    if version is None:
        return None
    return Limits(
        version,
        max_quantity=row[f"{of}_max_quantity"],
        max_notional=row[f"{of}_max_notional"],
        price_collar_bps=row[f"{of}_price_collar_bps"],
        max_orders_per_minute=row[f"{of}_max_orders_per_minute"],
        max_orders_per_day=row[f"{of}_max_orders_per_day"],
    )


def _orders(row: Mapping[str, Any], of: str) -> OrderCounts:
    return OrderCounts(row.get(f"{of}_orders_last_minute"), row.get(f"{of}_orders_last_day"))
