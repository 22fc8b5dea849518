"""The limits that can be set, by name: what an editor completes and what is sent."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from tip_client.orders import Number, decimal_of
from tip_client.request import given


class SymbolLimitValues(TypedDict, total=False):
    """Limits of a symbol; one that is left out is no limit."""

    max_quantity: Number
    max_notional: Number
    price_collar_bps: int
    max_orders_per_minute: int
    max_orders_per_day: int
    max_position_quantity: Number
    max_position_notional: Number
    max_open_orders: int
    allow_short: bool


class AccountLimitValues(SymbolLimitValues, total=False):
    """Limits of an account; one that is left out is no limit."""

    max_gross_exposure: Number
    max_daily_loss: Number
    allowed_symbols: Sequence[str]
    denied_symbols: Sequence[str]


_AMOUNTS = frozenset(
    {
        "max_quantity",
        "max_notional",
        "max_position_quantity",
        "max_position_notional",
        "max_gross_exposure",
        "max_daily_loss",
    }
)


def limits_body(limits: Mapping[str, Any]) -> dict[str, Any]:
    """As the API has them: amounts are decimals in strings."""
    return given(**{name: decimal_of(value) if name in _AMOUNTS else value for name, value in limits.items()})
