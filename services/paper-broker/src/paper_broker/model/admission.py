"""What an order needs before it is accepted, and what it then holds back."""

from dataclasses import replace
from decimal import ROUND_DOWN, Decimal

from paper_broker.model import matching
from paper_broker.model.accounts import Account
from paper_broker.model.orders import PLACES, ZERO, Change, Kind, NewOrder, Order, Side
from paper_broker.model.prices import Quote
from paper_broker.model.refusals import InsufficientBuyingPower, InsufficientQuantity, Unprocessable


def quantity(request: NewOrder, quote: Quote) -> Decimal:
    """The requested quantity, or what the notional buys at the quote."""
    if request.notional is None:
        return request.qty or ZERO
    qty = (request.notional / matching.touch(request.side, quote)).quantize(PLACES, ROUND_DOWN)
    if not qty:
        raise Unprocessable("notional is too small to trade anything")
    return qty


def high_water_mark(request: NewOrder, quote: Quote) -> Decimal | None:
    """Where a trailing stop begins: at the price it would trade at, or where the one that it replaces had got to."""
    if request.kind is not Kind.TRAILING_STOP:
        return None
    price = matching.touch(request.side, quote)
    if request.hwm is None:
        return price
    return min(request.hwm, price) if request.side is Side.BUY else max(request.hwm, price)


def stop_price(request: NewOrder, quote: Quote) -> Decimal | None:
    hwm = high_water_mark(request, quote)
    if hwm is None:
        return request.stop_price
    stop = matching.trailed(request, hwm)
    if stop <= 0:
        raise Unprocessable("the trail must be less than the price")
    return stop


def unit_hold(account: Account, request: NewOrder, qty: Decimal, quote: Quote) -> Decimal | None:
    """What one unit holds back of the buying power; None if the order only reduces a position."""
    stop = stop_price(request, quote)
    position, held = account.position(request.symbol).qty, account.held.get(request.symbol, ZERO)
    if request.side is Side.SELL and position > 0:
        if qty > position - held:
            raise InsufficientQuantity(request.symbol, qty, position, held)
        return None
    if request.side is Side.BUY and position < 0 and qty <= -position - held:
        return None
    if request.side is Side.SELL and qty != qty.to_integral_value():
        raise Unprocessable("fractional orders cannot be sold short")
    price = request.limit_price or stop or matching.touch(request.side, quote)
    if qty * price > account.buying_power:
        raise InsufficientBuyingPower(qty * price, account.buying_power)
    return price


def stop_leg(request: NewOrder) -> NewOrder:
    """The stop of an `oco` order as an order of its own, whose client order id the broker makes."""
    stop = request.stop_loss
    if stop is None:
        raise ValueError("not an oco order")
    kind = Kind.STOP if stop.limit_price is None else Kind.STOP_LIMIT
    leg = replace(request, kind=kind, client_order_id=None, stop_loss=None)
    return replace(leg, limit_price=stop.limit_price, stop_price=stop.stop_price)


def check_pair(request: NewOrder) -> None:
    """Refuse what Alpaca takes no `oco` order for."""
    stop = request.stop_loss
    if stop is None or request.kind is not Kind.LIMIT or request.limit_price is None:
        raise Unprocessable("oco orders must be limit orders with take_profit and stop_loss")
    if "/" in request.symbol:
        raise Unprocessable("crypto orders not allowed for advanced order_class: oco")
    if request.qty is None or request.qty != request.qty.to_integral_value():
        raise Unprocessable("fractional orders must be simple orders")
    if request.time_in_force in matching.IMMEDIATE or request.extended_hours:
        raise Unprocessable("oco orders must be day or gtc orders of the regular hours")
    distance = request.limit_price - stop.stop_price
    if (distance if request.side is Side.SELL else -distance) <= 0:
        raise Unprocessable("oco orders require a stop price on the other side of the limit price")


def unit_hold_without(account: Account, old: Order, request: NewOrder, qty: Decimal, quote: Quote) -> Decimal | None:
    """As if the old order were gone already: a replacement may use what it gives back."""
    if old.oco_id is not None and qty != old.remaining:
        raise Unprocessable("qty of a leg cannot be replaced")
    if old.is_held_leg:
        return ZERO
    account.hold(old, -1)
    try:
        return unit_hold(account, request, qty, quote)
    finally:
        account.hold(old, +1)


def replacement(old: Order, change: Change) -> NewOrder:
    """The order that a change puts in the place of the old one."""
    if old.notional is not None:
        raise Unprocessable("notional orders cannot be replaced")
    if change.trail is not None and old.kind is not Kind.TRAILING_STOP:
        raise Unprocessable(f"{old.kind} orders must not have trail")
    named_stop = old.stop_price if old.kind in matching.NAMED_STOPS else None
    return NewOrder(
        symbol=old.symbol,
        side=old.side,
        kind=old.kind,
        time_in_force=change.time_in_force or old.time_in_force,
        client_order_id=change.client_order_id,
        qty=old.remaining if change.qty is None else change.qty,
        limit_price=old.limit_price if change.limit_price is None else change.limit_price,
        stop_price=named_stop if change.stop_price is None else change.stop_price,
        extended_hours=old.extended_hours,
        trail_price=_new_trail(old.trail_price, change),
        trail_percent=_new_trail(old.trail_percent, change),
        hwm=old.hwm,
    )


def _new_trail(old: Decimal | None, change: Change) -> Decimal | None:
    return old if old is None or change.trail is None else change.trail
