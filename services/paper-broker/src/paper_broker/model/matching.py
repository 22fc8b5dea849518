"""Whether, at what price and how much of an order executes against a quote."""

import re
from dataclasses import replace
from decimal import ROUND_DOWN, Decimal
from enum import StrEnum

from paper_broker.model.orders import PLACES, ZERO, Kind, NewOrder, Order, Side, TimeInForce
from paper_broker.model.prices import Quote
from paper_broker.model.refusals import Unprocessable

NAMED_STOPS = frozenset({Kind.STOP, Kind.STOP_LIMIT})
STOPS = NAMED_STOPS | {Kind.TRAILING_STOP}
LIMITS = frozenset({Kind.LIMIT, Kind.STOP_LIMIT})
IMMEDIATE = frozenset({TimeInForce.IOC, TimeInForce.FOK})


class Script(StrEnum):
    """Symbols whose matching follows a script instead of the market."""

    OPEN = "SIM.OPEN"
    PARTIAL50 = "SIM.PARTIAL50"
    LATE_FILL = "SIM.LATE_FILL"
    CANCEL_REJECT = "SIM.CANCEL_REJECT"
    REPLACE_REJECT = "SIM.REPLACE_REJECT"
    REJECT_LATER = "SIM.REJECT_LATER"


SCRIPTED = frozenset(str(script) for script in Script)
TRICKLE = re.compile(r"SIM\.TRICKLE([1-9][0-9]{0,2})?", re.ASCII)
TRICKLE_RATE = 10
TRICKLE_QTY = Decimal(1)
REUSED_EXECUTION = "SIM.REUSED_EXECUTION"


def trickle_rate(symbol: str) -> int | None:
    """Executions a second of each open order of the symbol; None if it does not trickle."""
    found = TRICKLE.fullmatch(symbol)
    return int(found[1] or TRICKLE_RATE) if found else None


def is_scripted(symbol: str) -> bool:
    """Whether orders of the symbol never meet the quote by themselves."""
    return symbol in SCRIPTED or trickle_rate(symbol) is not None


def check(order: NewOrder) -> None:
    """Refuse what no market would take; the words are close to Alpaca's."""
    if order.qty is None and order.notional is None:
        raise Unprocessable("qty or notional is required")
    if order.qty is not None and order.notional is not None:
        raise Unprocessable("only one of qty or notional is accepted")
    if order.notional is not None and order.kind is not Kind.MARKET:
        raise Unprocessable("notional orders must be market orders")
    if order.notional is not None and order.time_in_force is not TimeInForce.DAY:
        raise Unprocessable("notional orders must be day orders")
    if order.extended_hours and (order.kind is not Kind.LIMIT or order.time_in_force is not TimeInForce.DAY):
        raise Unprocessable("extended hours order must be DAY limit orders")
    _check_price("limit_price", order.limit_price, wanted=order.kind in LIMITS, kind=order.kind)
    _check_price("stop_price", order.stop_price, wanted=order.kind in NAMED_STOPS, kind=order.kind)
    _check_trail(order)


def _check_trail(order: NewOrder) -> None:
    trails = [trail for trail in (order.trail_price, order.trail_percent) if trail is not None]
    if order.kind is not Kind.TRAILING_STOP:
        if trails:
            raise Unprocessable(f"{order.kind} orders must not have trail price or trail percent")
        return
    if len(trails) != 1:
        raise Unprocessable("trailing stop orders must specify one of trail_price or trail_percent")
    if order.time_in_force in IMMEDIATE:
        raise Unprocessable("trailing stop orders must be day or gtc orders")


def _check_price(name: str, price: Decimal | None, *, wanted: bool, kind: Kind) -> None:
    if wanted and price is None:
        raise Unprocessable(f"{kind} orders require {name.replace('_', ' ')}")
    if not wanted and price is not None:
        raise Unprocessable(f"{kind} orders must not have {name.replace('_', ' ')}")


def touch(side: Side, quote: Quote) -> Decimal:
    """The price this side trades at."""
    return quote.ask if side is Side.BUY else quote.bid


def size(side: Side, quote: Quote) -> Decimal | None:
    return quote.ask_size if side is Side.BUY else quote.bid_size


def at_or_better(side: Side, price: Decimal, limit: Decimal) -> bool:
    return price <= limit if side is Side.BUY else price >= limit


def triggers(order: Order, quote: Quote) -> bool:
    """A buy stop wakes when the ask has risen to it, a sell stop when the bid has fallen to it."""
    if order.stop_price is None or order.triggered:
        return False
    price = touch(order.side, quote)
    return price >= order.stop_price if order.side is Side.BUY else price <= order.stop_price


def followed(order: Order, quote: Quote) -> Order:
    """A trailing stop after a move of the price: a sell's stop only rises, a buy's only falls."""
    if order.hwm is None or order.triggered:
        return order
    price = touch(order.side, quote)
    hwm = min(order.hwm, price) if order.side is Side.BUY else max(order.hwm, price)
    return order if hwm == order.hwm else replace(order, hwm=hwm, stop_price=trailed(order, hwm))


def trailed(order: Order | NewOrder, hwm: Decimal) -> Decimal:
    """The stop price of a trailing stop whose best price was that."""
    percent = order.trail_percent or ZERO
    distance = order.trail_price if order.trail_price is not None else hwm * percent / 100
    stop = hwm + distance if order.side is Side.BUY else hwm - distance
    return stop.quantize(PLACES, ROUND_DOWN)


def marketable(order: Order, quote: Quote) -> bool:
    """Whether the order may trade at this quote, its stop being awake already."""
    if order.kind in STOPS and not order.triggered:
        return False
    return order.limit_price is None or at_or_better(order.side, touch(order.side, quote), order.limit_price)


def priority(order: Order) -> tuple[bool, Decimal, int]:
    """Price, then time: no limit before any limit, the more generous limit first, the older first."""
    if order.limit_price is None:
        return False, ZERO, order.sequence
    generous = -order.limit_price if order.side is Side.BUY else order.limit_price
    return True, generous, order.sequence


def executable(order: Order, quote: Quote) -> Decimal:
    """How much of a marketable order the quote can take; all or nothing for FOK."""
    limit = size(order.side, quote)
    qty = order.remaining if limit is None else min(order.remaining, limit)
    if order.time_in_force is TimeInForce.FOK and qty < order.remaining:
        return ZERO
    return qty


def half(order: Order) -> Decimal:
    return max(PLACES, (order.qty / 2).quantize(PLACES, ROUND_DOWN).normalize())


def scripted_price(order: Order, quote: Quote) -> Decimal:
    """A script fills whatever the market says: at the order's own limit if it has one."""
    return order.limit_price if order.limit_price is not None else touch(order.side, quote)
