"""What an exchange would refuse because of its steps and minimum sizes, known before anything is sent."""

from decimal import Decimal
from typing import Any

from tip_brokers.answers import parse_decimal
from tip_brokers.protocol import NewOrder, Refused


def check_limits(exchange: Any, order: NewOrder) -> None:
    if order.symbol not in exchange.markets:
        raise Refused("UNKNOWN_SYMBOL", f"{exchange.name} does not trade {order.symbol}.")
    market = exchange.market(order.symbol)
    if not market["spot"] or market["active"] is False:
        raise Refused("MARKET_CLOSED", f"{exchange.name} does not trade {order.symbol} now.")
    _check_step(exchange, "quantity", order.quantity, market["precision"]["amount"])
    for price in (order.limit_price, order.stop_price):
        if price is not None:
            _check_step(exchange, "price", price, market["precision"]["price"])
    _check_least("quantity", order.quantity, market["limits"]["amount"])
    if order.limit_price is not None:
        _check_least("value", order.quantity * order.limit_price, market["limits"]["cost"])


def _check_step(exchange: Any, name: str, value: Decimal, precision: object) -> None:
    step = _step(exchange, precision)
    if step and value % step:
        raise Refused("PRECISION", f"Its {name} must be a multiple of {step.normalize():f}.")


def _step(exchange: Any, precision: object) -> Decimal | None:
    """ccxt gives decimal places or the step itself, by the exchange."""
    given = parse_decimal(precision)
    if given is None:
        return None
    return given if exchange.precisionMode == TICK_SIZE else Decimal(1).scaleb(-int(given))


TICK_SIZE = 4  # ccxt's constant


def _check_least(name: str, value: Decimal, limits: Any) -> None:
    least = parse_decimal((limits or {}).get("min"))
    if least is not None and value < least:
        raise Refused("BELOW_MINIMUM", f"Its {name} must be at least {least.normalize():f}.")
