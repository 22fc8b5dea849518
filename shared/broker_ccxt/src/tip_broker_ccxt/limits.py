"""What an exchange would refuse because of its steps and minimum sizes, known before anything is sent."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from tip_brokers.answers import parse_decimal, plain
from tip_brokers.protocol import NewOrder, Refused


def check_limits(exchange: Any, order: NewOrder) -> None:
    if order.symbol not in exchange.markets:
        raise Refused("UNKNOWN_SYMBOL", f"{exchange.name} does not trade {order.symbol}.")
    market = exchange.market(order.symbol)
    if not market["spot"] or market["active"] is False:
        raise Refused("MARKET_CLOSED", f"{exchange.name} does not trade {order.symbol} now.")
    _check_least("quantity", order.quantity, market["limits"]["amount"])
    _check_digits("quantity", order.quantity, order.symbol, exchange.amount_to_precision)
    for price in (order.limit_price, order.stop_price):
        if price is not None:
            _check_digits("price", price, order.symbol, exchange.price_to_precision)
    if order.limit_price is not None:
        _check_least("value", order.quantity * order.limit_price, market["limits"]["cost"])


def _check_digits(name: str, value: Decimal, symbol: str, rounded: Callable[[str, str | None], str]) -> None:
    """ccxt rounds by the exchange's own rule: what that would change is not sent."""
    try:
        sent = Decimal(rounded(symbol, plain(value)))
    except AssertionError:  # ccxt's, of a market without steps
        raise Refused("PRECISION", f"The exchange does not say how many digits it takes for {symbol}.") from None
    if sent != value:
        raise Refused("PRECISION", f"Its {name} has more digits than the exchange takes for {symbol}.")


def _check_least(name: str, value: Decimal, limits: Any) -> None:
    least = parse_decimal((limits or {}).get("min"))
    if least is not None and value < least:
        raise Refused("BELOW_MINIMUM", f"Its {name} must be at least {least.normalize():f}.")
