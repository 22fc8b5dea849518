"""What the contract says about admission, written down a second time: slowly, case by case, and from nothing of ours.

It imports no code of the platform. Every number is recounted from the case's history for each question.
"""

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo

Refusals = list[tuple[str, str]]
MINUTE, DAY, PRICE_AGE = timedelta(seconds=60), timedelta(hours=24), timedelta(seconds=60)


@dataclass(frozen=True)
class PastOrder:
    """An order accepted earlier: how long ago, and what is filled of it. One that has ended can fill no more."""

    symbol: str
    side: str
    quantity: int
    filled: int
    ended: bool
    age: int

    @property
    def leaves(self) -> Decimal:
        return Decimal(0) if self.ended else Decimal(self.quantity - self.filled)


@dataclass(frozen=True)
class Holding:
    quantity: int
    price: str | None
    price_age: int


@dataclass(frozen=True)
class Order:
    symbol: str
    side: str
    quantity: int
    limit: str | None = None
    stop: str | None = None
    trail: tuple[str, str] | None = None
    """`trail_amount` or `trail_percent`, and how much."""
    notional: str | None = None


@dataclass(frozen=True)
class Case:
    """An account with its controls, its history, what it holds, and an order that is to be judged."""

    order: Order
    time_zone: str = "UTC"
    disabled: bool = False
    organization_state: str | None = None
    account_state: str | None = None
    manually_disabled: bool | None = None
    window: tuple[int, int] | None = None
    """In hours from now."""
    account_limits: dict[str, Any] | None = None
    symbol_limits: dict[str, Any] | None = None
    history: tuple[PastOrder, ...] = ()
    holdings: dict[str, Holding] = field(default_factory=dict)
    equity: tuple[int, int] | None = None
    """At the day's start, and now."""
    replaces: int | None = None
    """Which order of the history is replaced; None if the order is a new one."""

    @property
    def others(self) -> list[PastOrder]:
        return [past for place, past in enumerate(self.history) if place != self.replaces]

    @property
    def leaves(self) -> Decimal:
        """What the order can still fill: the total of a replacement has the fills in it."""
        filled = 0 if self.replaces is None else self.history[self.replaces].filled
        return counted_quantity(self) - filled


def clock(case: Case, now: datetime, hours: int) -> time:
    """What a clock of the account shows so many hours from now."""
    return (now + timedelta(hours=hours)).astimezone(ZoneInfo(case.time_zone)).time().replace(microsecond=0)


def refusals(case: Case, now: datetime) -> Refusals:
    """(control, code) of every refusal that the contract demands."""
    found: Refusals = []
    if case.order.notional and price(case, case.order.symbol) is None:
        found.append(("notional", "REFERENCE_PRICE_UNKNOWN"))
    if case.disabled:
        found.append(("account", "ACCOUNT_DISABLED"))
    for control, state in (("organization_switch", case.organization_state), ("account_switch", case.account_state)):
        if state == "HALTED":
            found.append((control, "TRADING_HALTED"))
        if state == "REDUCING" and not only_reduces(case):
            found.append((control, "TRADING_REDUCING"))
    if case.manually_disabled:
        found.append(("symbol_manual", "SYMBOL_DISABLED"))
    if case.window and not is_open(case, now):
        found.append(("symbol_time", "OUTSIDE_TRADING_WINDOW"))
    for control, limits in (("account_limits", case.account_limits), ("symbol_limits", case.symbol_limits)):
        for name, value in (limits or {}).items():
            code = JUDGES[name](case, control, value)
            if code:
                found.append((f"{control}.{name}", code))
    return sorted(found)


def is_open(case: Case, now: datetime) -> bool:
    start, end = (clock(case, now, hours) for hours in case.window or (0, 0))
    moment = now.astimezone(ZoneInfo(case.time_zone)).time()
    return start <= moment < end if start <= end else moment >= start or moment < end


def held(case: Case, symbol: str) -> Decimal:
    return Decimal(case.holdings[symbol].quantity) if symbol in case.holdings else Decimal(0)


def reachable(case: Case, symbol: str, orders: list[tuple[str, Decimal]]) -> list[Decimal]:
    """Every position that fills of some of these orders can lead to."""
    signed = [quantity if side == "BUY" else -quantity for side, quantity in orders]
    choices = product(*((Decimal(0), quantity) for quantity in signed))
    return [held(case, symbol) + sum(chosen, Decimal(0)) for chosen in choices]


def open_orders(case: Case, symbol: str, side: str | None = None) -> list[tuple[str, Decimal]]:
    """Together for each side: how many there are changes nothing about where they can lead."""
    sides = [side] if side else ["BUY", "SELL"]
    return [
        (which, sum((past.leaves for past in case.others if (past.symbol, past.side) == (symbol, which)), Decimal(0)))
        for which in sides
    ]


def worst(case: Case) -> Decimal:
    """How far the order can bring the position to its side."""
    order = case.order
    ahead = reachable(case, order.symbol, [*open_orders(case, order.symbol, order.side), (order.side, case.leaves)])
    return max(ahead) if order.side == "BUY" else -min(ahead)


def only_reduces(case: Case) -> bool:
    return case.order.notional is None and worst(case) <= 0


def price(case: Case, symbol: str) -> Decimal | None:
    holding = case.holdings.get(symbol)
    if holding is None or holding.price is None or timedelta(seconds=holding.price_age) > PRICE_AGE:
        return None
    return Decimal(holding.price)


def counted_quantity(case: Case) -> Decimal:
    """Of an order by its notional what it would buy at nine tenths of the price, in billionths, rounded up."""
    if case.order.notional is None:
        return Decimal(case.order.quantity)
    market = price(case, case.order.symbol)
    if market is None:
        return Decimal(0)
    exact = Fraction(case.order.notional) / Fraction(market) * 10 / 9
    return Decimal(ceil(exact * 10**9)) / 10**9


def accepted(case: Case, control: str, period: timedelta) -> int:
    symbols = [past for past in case.history if control == "account_limits" or past.symbol == case.order.symbol]
    return sum(1 for past in symbols if timedelta(seconds=past.age) < period)


def max_quantity(case: Case, _control: str, most: Decimal) -> str | None:
    return "QUANTITY_ABOVE_LIMIT" if counted_quantity(case) > most else None


def max_notional(case: Case, _control: str, most: Decimal) -> str | None:
    order, market = case.order, price(case, case.order.symbol)
    if order.notional:
        return "NOTIONAL_ABOVE_LIMIT" if Decimal(order.notional) > most else None
    if order.side == "BUY" and order.limit:
        highest = Decimal(order.limit)
    elif market is None:
        return "REFERENCE_PRICE_UNKNOWN"
    else:
        highest = max([market, *named_prices(order, market)])
    return "NOTIONAL_ABOVE_LIMIT" if highest * order.quantity > most else None


def named_prices(order: Order, market: Decimal) -> list[Decimal]:
    named = [Decimal(text) for text in (order.limit, order.stop) if text]
    if order.trail:
        name, trail = order.trail
        away = market * Decimal(trail) / 100 if name == "trail_percent" else Decimal(trail)
        named.append(market + away if order.side == "BUY" else market - away)
    return named


def price_collar_bps(case: Case, _control: str, bps: int) -> str | None:
    market = price(case, case.order.symbol)
    if not (case.order.limit or case.order.stop or case.order.trail):
        return None
    if market is None:
        return "REFERENCE_PRICE_UNKNOWN"
    outside = any(abs(price - market) / market * 10_000 > bps for price in named_prices(case.order, market))
    return "PRICE_OUTSIDE_COLLAR" if outside else None


def max_orders_per_minute(case: Case, control: str, most: int) -> str | None:
    return "ORDER_RATE_ABOVE_LIMIT" if accepted(case, control, MINUTE) >= most else None


def max_orders_per_day(case: Case, control: str, most: int) -> str | None:
    return "ORDER_RATE_ABOVE_LIMIT" if accepted(case, control, DAY) >= most else None


def max_open_orders(case: Case, control: str, most: int) -> str | None:
    if case.replaces is not None:
        return None
    there = [past for past in case.history if not past.ended]
    mine = [past for past in there if control == "account_limits" or past.symbol == case.order.symbol]
    return "OPEN_ORDERS_ABOVE_LIMIT" if len(mine) >= most else None


def max_position_quantity(case: Case, _control: str, most: Decimal) -> str | None:
    return "POSITION_ABOVE_LIMIT" if worst(case) > most else None


def max_position_notional(case: Case, _control: str, most: Decimal) -> str | None:
    after, market = worst(case), price(case, case.order.symbol)
    if after <= 0:
        return None
    if market is None:
        return "REFERENCE_PRICE_UNKNOWN"
    return "POSITION_NOTIONAL_ABOVE_LIMIT" if after * market > most else None


def allow_short(case: Case, _control: str, allowed: bool) -> str | None:
    goes_short = case.order.side == "SELL" and not only_reduces(case)
    return "SHORT_NOT_ALLOWED" if goes_short and not allowed else None


def size(case: Case, symbol: str, more: list[tuple[str, Decimal]]) -> Decimal:
    """The greatest position, long or short, that fills can lead to."""
    return max(abs(position) for position in reachable(case, symbol, [*open_orders(case, symbol), *more]))


def max_gross_exposure(case: Case, _control: str, most: Decimal) -> str | None:
    order, total = case.order, Decimal(0)
    before, after = size(case, order.symbol, []), size(case, order.symbol, [(order.side, case.leaves)])
    if after <= before:
        return None
    symbols = {order.symbol, *case.holdings, *(past.symbol for past in case.history)}
    for symbol in symbols:
        quantity = after if symbol == order.symbol else size(case, symbol, [])
        market = price(case, symbol)
        if quantity and market is None:
            return "REFERENCE_PRICE_UNKNOWN"
        total += quantity * (market or 0)
    return "GROSS_EXPOSURE_ABOVE_LIMIT" if total > most else None


def max_daily_loss(case: Case, _control: str, most: Decimal) -> str | None:
    if case.equity is None:
        return "DAILY_LOSS_ABOVE_LIMIT"
    start, now = case.equity
    return "DAILY_LOSS_ABOVE_LIMIT" if start - now > most and not only_reduces(case) else None


def allowed_symbols(case: Case, _control: str, symbols: list[str]) -> str | None:
    return None if case.order.symbol in symbols else "SYMBOL_NOT_ALLOWED"


def denied_symbols(case: Case, _control: str, symbols: list[str]) -> str | None:
    return "SYMBOL_DENIED" if case.order.symbol in symbols else None


JUDGES: dict[str, Any] = {
    judge.__name__: judge
    for judge in (
        max_quantity,
        max_notional,
        price_collar_bps,
        max_orders_per_minute,
        max_orders_per_day,
        max_open_orders,
        max_position_quantity,
        max_position_notional,
        allow_short,
        max_gross_exposure,
        max_daily_loss,
        allowed_symbols,
        denied_symbols,
    )
}
