"""Limits as people set and read them, and how much of each is used."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

NO_SYMBOL = "TIP.NONE"
"""Held by nobody: what counts for the account is the same for every symbol."""


@dataclass(frozen=True)
class Limit:
    """One of those that the API has."""

    name: str
    title: str
    kind: str
    meaning: str
    is_of_account: bool = False


LIMITS = (
    Limit("max_quantity", "Quantity of an order", "amount", "the most that one order may be for"),
    Limit("max_notional", "Value of an order", "amount", "quantity times price"),
    Limit("price_collar_bps", "Distance from the market", "count", "of an order's price, in hundredths of a percent"),
    Limit("max_orders_per_minute", "Orders in a minute", "count", "accepted within 60 seconds"),
    Limit("max_orders_per_day", "Orders in a day", "count", "accepted within 24 hours"),
    Limit("max_open_orders", "Open orders", "count", "at the same time"),
    Limit("max_position_quantity", "Quantity of a position", "amount", "long or short, with open orders"),
    Limit("max_position_notional", "Value of a position", "amount", "long or short, with open orders"),
    Limit("max_gross_exposure", "Gross exposure", "amount", "what all positions and open orders come to", True),
    Limit("max_daily_loss", "Loss of a day", "amount", "beyond it, only what reduces a position passes", True),
    Limit("allow_short", "Short positions", "flag", "whether a position may be short"),
    Limit("allowed_symbols", "Only these symbols", "symbols", "with commas between", True),
    Limit("denied_symbols", "Not these symbols", "symbols", "with commas between", True),
)
OF_SYMBOLS = tuple(limit for limit in LIMITS if not limit.is_of_account)


@dataclass(frozen=True)
class Usage:
    """A limit that is set, and how much of it is used; None: nothing is counted for it, or it is not known."""

    limit: Limit
    value: Any
    used: Decimal | None = None
    note: str = ""

    @property
    def share(self) -> float | None:
        """How much of the bar is filled, from 0 to 100; what is beyond the limit fills it."""
        return None if self.used is None else float(min(Decimal(100), 100 * self.used / Decimal(str(self.value))))

    @property
    def percent(self) -> int | None:
        return None if self.used is None else int(100 * self.used / Decimal(str(self.value)))

    @property
    def is_reached(self) -> bool:
        return self.used is not None and self.used >= Decimal(str(self.value))

    @property
    def text(self) -> str:
        """Of a limit that is no figure."""
        return _shown(self.value)


Used = Mapping[str, tuple[Any, str]]
"""By the name of the limit: how much, and a word on what was counted."""
_COUNTED = (
    *("max_orders_per_minute", "max_orders_per_day", "max_open_orders", "max_gross_exposure", "max_daily_loss"),
    *("max_position_quantity", "max_position_notional"),
)
NOT_COUNTED: Used = dict.fromkeys(_COUNTED, (None, "cannot be counted at this moment"))


def usages(control: Mapping[str, Any], used: Used) -> list[Usage]:
    """Of the limits that are set."""
    known = [limit for limit in LIMITS if control.get(limit.name) is not None]
    return [_usage(limit, control[limit.name], *used.get(limit.name, (None, ""))) for limit in known]


def set_values(control: Mapping[str, Any] | None) -> dict[str, Any]:
    """The limits of a control that are set, and nothing else of it."""
    found = control or {}
    return {limit.name: found[limit.name] for limit in LIMITS if found.get(limit.name) is not None}


def _usage(limit: Limit, value: Any, used: Any, note: str) -> Usage:
    return Usage(limit, value, None if used is None else Decimal(str(used)), note)


def used_of_account(facts: Mapping[str, Any], positions: Iterable[Mapping[str, Any]]) -> Used:
    """By the facts of a preview for a symbol that nobody holds, and by what is held."""
    held = list(positions)
    return {
        "max_orders_per_minute": (facts["account_orders_last_minute"], ""),
        "max_orders_per_day": (facts["account_orders_last_day"], ""),
        "max_open_orders": (facts["account_open_orders"], ""),
        "max_gross_exposure": (facts["other_exposure"], "a price is not known" if _lacks(facts) else ""),
        "max_daily_loss": (_daily_loss(facts), "" if facts["equity"] else "the equity is not known"),
        "max_position_quantity": _largest(held, "quantity"),
        "max_position_notional": _largest(held, "market_value"),
    }


def used_of_symbol(facts: Mapping[str, Any], price: str | None) -> Used:
    """By the facts of a preview of a BUY; `price` is what the position was last valued at."""
    size = _greatest_size(facts)
    value = None if size is None or (price is None and size) else size * Decimal(price or 0)
    return {
        "max_orders_per_minute": (facts["symbol_orders_last_minute"], ""),
        "max_orders_per_day": (facts["symbol_orders_last_day"], ""),
        "max_open_orders": (facts["symbol_open_orders"], ""),
        "max_position_quantity": (size, ""),
        "max_position_notional": (value, "no price is known" if value is None else ""),
    }


def _lacks(facts: Mapping[str, Any]) -> bool:
    return facts["other_exposure"] is None


def _daily_loss(facts: Mapping[str, Any]) -> Decimal | None:
    """Since the first equity of the day."""
    if facts["day_start_equity"] is None or facts["equity"] is None:
        return None
    return max(Decimal(0), Decimal(facts["day_start_equity"]) - Decimal(facts["equity"]))


def _greatest_size(facts: Mapping[str, Any]) -> Decimal | None:
    """Long or short, to which fills of the open orders can lead."""
    if facts["position_quantity"] is None:
        return None
    names = ("position_quantity", "open_quantity", "opposite_open_quantity")
    held, buying, selling = (Decimal(facts[name]) for name in names)
    return max(held + buying, selling - held, Decimal(0))


def _largest(positions: list[Mapping[str, Any]], name: str) -> tuple[Decimal | None, str]:
    """Of the positions that are held; each symbol's page counts its open orders, too."""
    held = [position for position in positions if Decimal(position["quantity"])]
    if any(position.get(name) is None for position in held):
        return None, "a price is not known"
    sizes = [(abs(Decimal(position[name])), position["symbol"]) for position in held]
    size, symbol = max(sizes, default=(Decimal(0), ""))
    return size, f"{symbol}, the largest held; open orders come on top" if size else "nothing is held"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "allowed" if value else "not allowed"
    return ", ".join(value) if isinstance(value, list) else str(value)


def typed(value: Any) -> str:
    """A value as a form has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else _shown(value)


def read(field: Callable[[str], str], limits: Iterable[Limit]) -> dict[str, Any]:
    """What a form says, as the API takes it; whether it is a limit is for the API to say."""
    return {limit.name: _PARSED[limit.kind](text) for limit in limits if (text := field(limit.name))}


def _whole(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else text


_PARSED: Mapping[str, Callable[[str], Any]] = {
    "amount": str,
    "count": _whole,
    "flag": lambda text: text == "yes",
    "symbols": lambda text: text.replace(",", " ").split(),
}
