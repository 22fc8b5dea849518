"""How much of a limit is used, by the facts that a submit would be decided by."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tip_client import Client
    from tip_client.models.controls import AccountLimits, PreviewFacts, SymbolLimits

Used = Mapping[str, Decimal | int | None]
"""By the name of the limit; None is not known."""

NO_SYMBOL = "TIP.NONE"
"""Held by nobody: what counts for the account is the same for every symbol."""


def account_usage(client: "Client", limits: "AccountLimits") -> Used:
    from tip_client import Market

    order = Market(NO_SYMBOL, "BUY", 1)
    facts = client.controls.preview(order, facts={"reference_price": Decimal(1)}).facts
    used = {
        "max_orders_per_minute": facts.account_orders_last_minute,
        "max_orders_per_day": facts.account_orders_last_day,
        "max_open_orders": facts.account_open_orders,
        "max_gross_exposure": facts.other_exposure,
        "max_daily_loss": daily_loss(facts),
    }
    return _limited(used, limits)


def symbol_usage(client: "Client", limits: "SymbolLimits") -> Used:
    from tip_client import Market

    facts = client.controls.preview(Market(limits.symbol, "BUY", 1)).facts
    size, price = greatest_size(facts), facts.reference_price
    used = {
        "max_orders_per_minute": facts.symbol_orders_last_minute,
        "max_orders_per_day": facts.symbol_orders_last_day,
        "max_open_orders": facts.symbol_open_orders,
        "max_position_quantity": size,
        "max_position_notional": None if size is None or price is None else size * price,
    }
    return _limited(used, limits)


def daily_loss(facts: "PreviewFacts") -> Decimal | None:
    """Since the first equity of the day."""
    if facts.day_start_equity is None or facts.equity is None:
        return None
    return max(Decimal(0), facts.day_start_equity - facts.equity)


def greatest_size(facts: "PreviewFacts") -> Decimal | None:
    """Long or short, to which fills of the open orders can lead; the facts are those of a BUY."""
    if facts.position_quantity is None:
        return None
    long, short = facts.position_quantity + facts.open_quantity, facts.opposite_open_quantity - facts.position_quantity
    return max(long, short, Decimal(0))


def _limited(used: Used, limits: "AccountLimits | SymbolLimits") -> Used:
    """Of what is limited alone."""
    return {name: value for name, value in used.items() if getattr(limits, name) is not None}
