"""From a row of the submitting query to facts, so that whoever reads the views names columns and decides nothing."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from control_rules.days import has_begun_after
from control_rules.facts import (
    Facts,
    Limits,
    ManualControl,
    OrderCounts,
    ReferencePrice,
    Switch,
    TimeControl,
    TradingState,
)

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
    "account_max_position_quantity",
    "account_max_position_notional",
    "account_max_open_orders",
    "account_allow_short",
    "account_max_gross_exposure",
    "account_max_daily_loss",
    "account_allowed_symbols",
    "account_denied_symbols",
    "symbol_max_position_quantity",
    "symbol_max_position_notional",
    "symbol_max_open_orders",
    "symbol_allow_short",
)
"""The columns of `controls_api.rules(organization_id, account_id, symbol)`. A version that is NULL: not set."""

ORDER_COLUMNS = (
    "account_orders_last_minute",
    "account_orders_last_day",
    "symbol_orders_last_minute",
    "symbol_orders_last_day",
    "account_open_orders",
    "symbol_open_orders",
    "position_quantity",
    "open_quantity",
    "opposite_open_quantity",
    "reference_price",
    "reference_price_source",
    "reference_price_at",
    "other_exposure",
    "equity",
    "day_start_equity",
    "equity_day_ends_at",
    "now",
)
"""What the caller adds; a column that is absent or NULL is a fact that is not known."""

_PLAIN = (
    "position_quantity",
    "open_quantity",
    "opposite_open_quantity",
    "other_exposure",
    "equity",
)
_LIMITS = tuple(field.name for field in fields(Limits) if field.name != "version")


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
        **order_facts_from_row(row, row["time_zone"]),
    )


def order_facts_from_row(row: Mapping[str, Any], time_zone: str) -> dict[str, Any]:
    """The fields of `Facts` that ORDER_COLUMNS give."""
    return {
        "account_orders": _orders(row, "account"),
        "symbol_orders": _orders(row, "symbol"),
        "reference_price": _price(row),
        "day_start_equity": _day_start_equity(row, time_zone),
        **{name: row.get(name) for name in _PLAIN},
    }


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
    return Limits(version, **{name: _limit(row.get(f"{of}_{name}")) for name in _LIMITS})


def _limit(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _orders(row: Mapping[str, Any], of: str) -> OrderCounts:
    return OrderCounts(
        row.get(f"{of}_orders_last_minute"), row.get(f"{of}_orders_last_day"), row.get(f"{of}_open_orders")
    )


def _price(row: Mapping[str, Any]) -> ReferencePrice | None:
    value = row.get("reference_price")
    return None if value is None else ReferencePrice(value, row["reference_price_source"], row["reference_price_at"])


def _day_start_equity(row: Mapping[str, Any], time_zone: str) -> Decimal | None:
    """That of the day of which the broker last reported; once the next one has begun, the last equity known."""
    ends_at: datetime | None = row.get("equity_day_ends_at")
    is_over = ends_at is not None and has_begun_after(ends_at, row["now"], time_zone)
    found: Decimal | None = row.get("equity" if is_over else "day_start_equity")
    return found
