"""Limits: each that is set gives a result of its own. What reaches a limit exactly is within it."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from control_rules.facts import (
    EXACTLY,
    Command,
    CommandType,
    Facts,
    Limits,
    OrderCounts,
    OrderSide,
    Outcome,
    RefusalCode,
)
from control_rules.positions import furthest, greatest, reduces
from control_rules.results import NOT_APPLICABLE, PASSED, Result, refused, unknown

GROSS_EXPOSURE = "max_gross_exposure"
"""The limit that needs the prices of other symbols, too."""
_BASIS_POINTS = Decimal(10_000)


def account_limits(limits: Limits, facts: Facts, command: Command, now: datetime) -> Iterator[tuple[str, Result]]:
    """The limits of an account, which also count what it does in other symbols."""
    yield from _limits(limits, facts.account_orders, facts, command, now)
    if limits.max_gross_exposure is not None:
        yield GROSS_EXPOSURE, _gross_exposure(limits.max_gross_exposure, facts, command, now)
    if limits.max_daily_loss is not None:
        yield "max_daily_loss", _daily_loss(limits.max_daily_loss, facts, command)
    if limits.allowed_symbols is not None:
        yield "allowed_symbols", _allowed(limits.allowed_symbols, command)
    if limits.denied_symbols is not None:
        yield "denied_symbols", _denied(limits.denied_symbols, command)


def symbol_limits(limits: Limits, facts: Facts, command: Command, now: datetime) -> Iterator[tuple[str, Result]]:
    """The limits of one symbol on an account."""
    yield from _limits(limits, facts.symbol_orders, facts, command, now)


def _limits(
    limits: Limits, orders: OrderCounts, facts: Facts, command: Command, now: datetime
) -> Iterator[tuple[str, Result]]:
    yield from _limits_of_the_order(limits, facts, command, now)
    if limits.max_orders_per_minute is not None:
        yield "max_orders_per_minute", _rate(limits.max_orders_per_minute, orders.last_minute, "minute")
    if limits.max_orders_per_day is not None:
        yield "max_orders_per_day", _rate(limits.max_orders_per_day, orders.last_day, "day")
    if limits.max_open_orders is not None:
        yield "max_open_orders", _open_orders(limits.max_open_orders, orders.open, command)
    yield from _limits_of_the_position(limits, facts, command, now)


def _limits_of_the_order(limits: Limits, facts: Facts, command: Command, now: datetime) -> Iterator[tuple[str, Result]]:
    if limits.max_quantity is not None:
        yield "max_quantity", _quantity(limits.max_quantity, command)
    if limits.max_notional is not None:
        yield "max_notional", _notional(limits.max_notional, facts, command, now)
    if limits.price_collar_bps is not None:
        yield "price_collar_bps", _collar(limits.price_collar_bps, facts, command, now)


def _limits_of_the_position(
    limits: Limits, facts: Facts, command: Command, now: datetime
) -> Iterator[tuple[str, Result]]:
    if limits.max_position_quantity is not None:
        yield "max_position_quantity", _position_quantity(limits.max_position_quantity, facts, command)
    if limits.max_position_notional is not None:
        yield "max_position_notional", _position_notional(limits.max_position_notional, facts, command, now)
    if limits.allow_short is not None:
        yield "allow_short", _short(allowed=limits.allow_short, facts=facts, command=command)


def no_price(facts: Facts, now: datetime) -> Result:
    """Of a control that needs the reference price."""
    price = facts.reference_price
    if price is None:
        return unknown(RefusalCode.REFERENCE_PRICE_UNKNOWN, "reference price")
    age, most = int((now - price.at).total_seconds()), int(facts.price_max_age.total_seconds())
    message = f"the last price, {price.value:f} ({price.source}), is {age} seconds old, of at most {most}"
    return Result(
        Outcome.NOT_EVALUATED, RefusalCode.REFERENCE_PRICE_UNKNOWN, f"This control cannot be evaluated: {message}."
    )


def _quantity(most: Decimal, command: Command) -> Result:
    if command.quantity <= most:
        return PASSED
    return refused(RefusalCode.QUANTITY_ABOVE_LIMIT, f"The quantity {command.quantity:f} is above {most:f}.")


def _notional(most: Decimal, facts: Facts, command: Command, now: datetime) -> Result:
    notional = notional_to_expect(facts, command, now)
    if notional is None:
        return no_price(facts, now)
    if notional <= most:
        return PASSED
    return refused(RefusalCode.NOTIONAL_ABOVE_LIMIT, f"The notional {notional:f} is above {most:f}.")


def notional_to_expect(facts: Facts, command: Command, now: datetime) -> Decimal | None:
    """What the order may well come to: what it says, or its quantity at the price to expect; None if unknown."""
    if command.notional is not None:
        return command.notional
    price = price_to_expect(facts, command, now)
    return None if price is None else EXACTLY.multiply(command.quantity, price)


def price_to_expect(facts: Facts, command: Command, now: datetime) -> Decimal | None:
    """The highest price the order may well trade at; None if it cannot be known.

    Only the limit of a BUY is a ceiling. A SELL with a limit, or a stop, may trade at the market's price instead, so
    without that price nothing is known of it, however low the price that the order names.
    """
    if command.side is OrderSide.BUY and command.limit_price is not None:
        return command.limit_price
    reference = facts.usable_price(now)
    if reference is None:
        return None
    return max([reference, *command.named_prices(reference)])


def _collar(bps: int, facts: Facts, command: Command, now: datetime) -> Result:
    """Every price that the order names is judged; a market order names none."""
    if not command.names_prices:
        return NOT_APPLICABLE
    reference = facts.usable_price(now)
    if reference is None:
        return no_price(facts, now)
    # Multiplied and not divided: exact, so the edge of the collar is inside it.
    farthest = EXACTLY.multiply(Decimal(bps), reference)
    for price in command.named_prices(reference):
        if EXACTLY.multiply(abs(price - reference), _BASIS_POINTS) > farthest:
            return refused(
                RefusalCode.PRICE_OUTSIDE_COLLAR,
                f"The price {price:f} is more than {bps} basis points from {reference:f}.",
            )
    return PASSED


def _rate(most: int, before: int | None, period: str) -> Result:
    if before is None:
        return unknown(RefusalCode.ORDER_RATE_ABOVE_LIMIT, f"number of orders in the last {period}")
    if before < most:
        return PASSED
    return refused(RefusalCode.ORDER_RATE_ABOVE_LIMIT, f"There were {before} orders in the last {period}, of {most}.")


def _open_orders(most: int, others: int | None, command: Command) -> Result:
    """A REPLACE opens no further order."""
    if command.type is not CommandType.CREATE:
        return NOT_APPLICABLE
    if others is None:
        return unknown(RefusalCode.OPEN_ORDERS_ABOVE_LIMIT, "number of open orders")
    if others < most:
        return PASSED
    return refused(RefusalCode.OPEN_ORDERS_ABOVE_LIMIT, f"There are {others} open orders, of {most}.")


def _position_quantity(most: Decimal, facts: Facts, command: Command) -> Result:
    after = furthest(facts, command)
    if isinstance(after, str):
        return unknown(RefusalCode.POSITION_ABOVE_LIMIT, after)
    if after <= most:
        return PASSED
    return refused(
        RefusalCode.POSITION_ABOVE_LIMIT, f"The position could become {after:f}, open orders included: above {most:f}."
    )


def _position_notional(most: Decimal, facts: Facts, command: Command, now: datetime) -> Result:
    after = furthest(facts, command)
    if isinstance(after, str):
        return unknown(RefusalCode.POSITION_NOTIONAL_ABOVE_LIMIT, after)
    if after <= 0:
        return PASSED
    price = facts.usable_price(now)
    if price is None:
        return no_price(facts, now)
    if (notional := EXACTLY.multiply(after, price)) <= most:
        return PASSED
    return refused(
        RefusalCode.POSITION_NOTIONAL_ABOVE_LIMIT,
        f"The position could be worth {notional:f}, open orders included: above {most:f}.",
    )


def _short(*, allowed: bool, facts: Facts, command: Command) -> Result:
    if allowed or command.side is not OrderSide.SELL:
        return PASSED
    reducing = reduces(facts, command)
    if isinstance(reducing, str):
        return unknown(RefusalCode.SHORT_NOT_ALLOWED, reducing)
    if reducing:
        return PASSED
    return refused(
        RefusalCode.SHORT_NOT_ALLOWED, "The order, with the other open SELL orders, could make the position short."
    )


def _gross_exposure(most: Decimal, facts: Facts, command: Command, now: datetime) -> Result:
    """What does not increase the exposure passes, also when it is above the limit already."""
    sizes = greatest(facts, command)
    if isinstance(sizes, str):
        return unknown(RefusalCode.GROSS_EXPOSURE_ABOVE_LIMIT, sizes)
    before, after = sizes
    if after <= before:
        return PASSED
    price = facts.usable_price(now)
    if price is None:
        return no_price(facts, now)
    if facts.other_exposure is None:
        return unknown(RefusalCode.REFERENCE_PRICE_UNKNOWN, "reference price of another symbol that is held or open")
    if (exposure := EXACTLY.add(facts.other_exposure, EXACTLY.multiply(after, price))) <= most:
        return PASSED
    return refused(
        RefusalCode.GROSS_EXPOSURE_ABOVE_LIMIT,
        f"The gross exposure could become {exposure:f}, open orders included: above {most:f}.",
    )


def exposure_growth(facts: Facts, command: Command, now: datetime) -> Decimal | None:
    """By how much the command increases the gross exposure; None if that cannot be known."""
    sizes = greatest(facts, command)
    if isinstance(sizes, str):
        return None
    before, after = sizes
    price = facts.usable_price(now)
    if after <= before:
        return Decimal(0)
    return None if price is None else EXACTLY.multiply(after - before, price)


def _daily_loss(most: Decimal, facts: Facts, command: Command) -> Result:
    """Beyond the limit only what reduces the position passes."""
    if facts.equity is None or facts.day_start_equity is None:
        return unknown(RefusalCode.DAILY_LOSS_ABOVE_LIMIT, "account's equity")
    loss = facts.day_start_equity - facts.equity
    if loss <= most or reduces(facts, command) is True:
        return PASSED
    return refused(
        RefusalCode.DAILY_LOSS_ABOVE_LIMIT,
        f"The account lost {loss:f} since its day began, of {most:f}: only what reduces a position passes.",
    )


def _allowed(symbols: tuple[str, ...], command: Command) -> Result:
    if command.symbol in symbols:
        return PASSED
    return refused(RefusalCode.SYMBOL_NOT_ALLOWED, f"{command.symbol} is not among the allowed symbols.")


def _denied(symbols: tuple[str, ...], command: Command) -> Result:
    if command.symbol not in symbols:
        return PASSED
    return refused(RefusalCode.SYMBOL_DENIED, f"{command.symbol} is among the denied symbols.")
