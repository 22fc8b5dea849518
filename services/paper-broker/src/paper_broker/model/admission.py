"""What an order needs before it is accepted, and what it then holds back."""

from decimal import ROUND_DOWN, Decimal

from paper_broker.model import matching
from paper_broker.model.accounts import Account
from paper_broker.model.orders import PLACES, ZERO, Change, NewOrder, Order, Side
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


def unit_hold(account: Account, request: NewOrder, qty: Decimal, quote: Quote) -> Decimal | None:
    """What one unit holds back of the buying power; None if the order only reduces a position."""
    position, held = account.position(request.symbol).qty, account.held.get(request.symbol, ZERO)
    if request.side is Side.SELL and position > 0:
        if qty > position - held:
            raise InsufficientQuantity(request.symbol, qty, position, held)
        return None
    if request.side is Side.BUY and position < 0 and qty <= -position - held:
        return None
    if request.side is Side.SELL and qty != qty.to_integral_value():
        raise Unprocessable("fractional orders cannot be sold short")
    price = request.limit_price or request.stop_price or matching.touch(request.side, quote)
    if qty * price > account.buying_power:
        raise InsufficientBuyingPower(qty * price, account.buying_power)
    return price


def unit_hold_without(account: Account, old: Order, request: NewOrder, qty: Decimal, quote: Quote) -> Decimal | None:
    """As if the old order were gone already: a replacement may use what it gives back."""
    account.hold(old, -1)
    try:
        return unit_hold(account, request, qty, quote)
    finally:
        account.hold(old, +1)


def replacement(old: Order, change: Change) -> NewOrder:
    """The order that a change puts in the place of the old one."""
    return NewOrder(
        symbol=old.symbol,
        side=old.side,
        kind=old.kind,
        time_in_force=change.time_in_force or old.time_in_force,
        client_order_id=change.client_order_id,
        qty=old.remaining if change.qty is None else change.qty,
        limit_price=old.limit_price if change.limit_price is None else change.limit_price,
        stop_price=old.stop_price if change.stop_price is None else change.stop_price,
        extended_hours=old.extended_hours,
    )
