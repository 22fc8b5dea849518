"""The rule itself. Every control that is set gives one check; each limit of a set of limits gives its own.

CANCEL always passes, because it only reduces risk. A control that lacks a fact it needs is NOT_EVALUATED, and what
was not evaluated does not pass: the refusal has the control's usual code and its message names the missing fact.
"""

from collections.abc import Iterator
from datetime import datetime
from decimal import Context, Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfoNotFoundError

from control_rules.facts import (
    Check,
    Command,
    CommandType,
    Decision,
    Facts,
    Limits,
    OrderCounts,
    OrderSide,
    Outcome,
    Refusal,
    RefusalCode,
    Switch,
    TradingState,
    Verdict,
)
from control_rules.windows import wall_clock

_BASIS_POINTS = Decimal(10_000)
# The usual 28 digits would round the product of two long decimals, and the edge of a limit with it.
_EXACTLY = Context(prec=100)


class _Finding(NamedTuple):
    """The result of one control. Without a code it does not refuse."""

    control: str
    version: int
    outcome: Outcome
    code: RefusalCode | None = None
    message: str = ""

    @property
    def check(self) -> Check:
        return Check(self.control, self.version, self.outcome)

    @property
    def not_applicable(self) -> "_Finding":
        return _Finding(self.control, self.version, Outcome.NOT_APPLICABLE)


class _Result(NamedTuple):
    """A finding before it has the name of its control."""

    outcome: Outcome
    code: RefusalCode | None = None
    message: str = ""


_PASSED = _Result(Outcome.PASSED)
_NOT_APPLICABLE = _Result(Outcome.NOT_APPLICABLE)


def evaluate(facts: Facts, command: Command, now: datetime) -> Decision:
    """Whether the command may pass at this moment, and every reason to refuse it."""
    findings = list(_findings(facts, command, now))
    if command.type is CommandType.CANCEL:
        findings = [finding.not_applicable for finding in findings]
    refusals = tuple(
        Refusal(finding.code, finding.control, finding.version, finding.message) for finding in findings if finding.code
    )
    return Decision(
        Verdict.REFUSED if refusals else Verdict.ALLOWED,
        tuple(finding.check for finding in findings),
        refusals,
    )


def _findings(facts: Facts, command: Command, now: datetime) -> Iterator[_Finding]:
    yield _Finding("account", facts.account_version, *_account(facts))
    if facts.organization_switch:
        switch = facts.organization_switch
        yield _Finding("organization_switch", switch.version, *_switch(switch, "organization", facts, command))
    if facts.account_switch:
        switch = facts.account_switch
        yield _Finding("account_switch", switch.version, *_switch(switch, "account", facts, command))
    if facts.symbol_manual:
        yield _Finding("symbol_manual", facts.symbol_manual.version, *_manual(facts, command))
    if facts.symbol_time:
        yield _Finding("symbol_time", facts.symbol_time.version, *_time(facts, now))
    if facts.account_limits:
        yield from _limits("account_limits", facts.account_limits, facts.account_orders, facts, command)
    if facts.symbol_limits:
        yield from _limits("symbol_limits", facts.symbol_limits, facts.symbol_orders, facts, command)


def _refused(code: RefusalCode, message: str) -> _Result:
    return _Result(Outcome.REFUSED, code, message)


def _unknown(code: RefusalCode, fact: str) -> _Result:
    return _Result(Outcome.NOT_EVALUATED, code, f"This control cannot be evaluated: the {fact} is not known.")


def _account(facts: Facts) -> _Result:
    if facts.account_disabled:
        return _refused(RefusalCode.ACCOUNT_DISABLED, "The account is disabled.")
    return _PASSED


def _switch(switch: Switch, of: str, facts: Facts, command: Command) -> _Result:
    if switch.trading_state is TradingState.HALTED:
        return _refused(RefusalCode.TRADING_HALTED, _because(f"Trading of the {of} is halted", switch.reason))
    if switch.trading_state is TradingState.REDUCING:
        return _reducing(switch, of, facts, command)
    return _PASSED


def _reducing(switch: Switch, of: str, facts: Facts, command: Command) -> _Result:
    """Passes only what, together with the other open orders of its side, at most closes the position."""
    if facts.position_quantity is None:
        return _unknown(RefusalCode.TRADING_REDUCING, "position")
    if facts.open_quantity is None:
        return _unknown(RefusalCode.TRADING_REDUCING, "quantity of the other open orders")
    closing = OrderSide.SELL if facts.position_quantity > 0 else OrderSide.BUY
    sold_or_bought = command.quantity - command.filled_quantity + facts.open_quantity
    if command.side is closing and sold_or_bought <= abs(facts.position_quantity):
        return _PASSED
    return _refused(
        RefusalCode.TRADING_REDUCING,
        _because(f"The {of} only lets through what reduces the position", switch.reason),
    )


def _because(sentence: str, reason: str | None) -> str:
    return f"{sentence}: {reason}" if reason else f"{sentence}."


def _manual(facts: Facts, command: Command) -> _Result:
    control = facts.symbol_manual
    if control and control.manually_disabled:
        return _refused(RefusalCode.SYMBOL_DISABLED, _because(f"{command.symbol} is disabled", control.manual_reason))
    return _PASSED


def _time(facts: Facts, now: datetime) -> _Result:
    if facts.symbol_time is None or not facts.symbol_time.window.is_set:
        return _NOT_APPLICABLE
    window = facts.symbol_time.window
    try:
        moment = wall_clock(now, facts.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return _unknown(RefusalCode.OUTSIDE_TRADING_WINDOW, "account's time zone")
    if window.contains(moment):
        return _PASSED
    return _refused(
        RefusalCode.OUTSIDE_TRADING_WINDOW,
        f"It is {moment:%H:%M:%S} in {facts.time_zone}; the trading window is {window}.",
    )


def _limits(control: str, limits: Limits, orders: OrderCounts, facts: Facts, command: Command) -> Iterator[_Finding]:
    def finding(name: str, result: _Result) -> _Finding:
        return _Finding(f"{control}.{name}", limits.version, *result)

    if limits.max_quantity is not None:
        yield finding("max_quantity", _quantity(limits.max_quantity, command))
    if limits.max_notional is not None:
        yield finding("max_notional", _notional(limits.max_notional, facts, command))
    if limits.price_collar_bps is not None:
        yield finding("price_collar_bps", _collar(limits.price_collar_bps, facts, command))
    if limits.max_orders_per_minute is not None:
        yield finding("max_orders_per_minute", _rate(limits.max_orders_per_minute, orders.last_minute, "minute"))
    if limits.max_orders_per_day is not None:
        yield finding("max_orders_per_day", _rate(limits.max_orders_per_day, orders.last_day, "day"))


def _quantity(most: Decimal, command: Command) -> _Result:
    if command.quantity <= most:
        return _PASSED
    return _refused(RefusalCode.QUANTITY_ABOVE_LIMIT, f"The quantity {command.quantity:f} is above {most:f}.")


def _notional(most: Decimal, facts: Facts, command: Command) -> _Result:
    price = _price_to_expect(facts, command)
    if price is None:
        return _unknown(RefusalCode.NOTIONAL_ABOVE_LIMIT, "reference price")
    if (notional := _EXACTLY.multiply(command.quantity, price)) <= most:
        return _PASSED
    return _refused(RefusalCode.NOTIONAL_ABOVE_LIMIT, f"The notional {notional:f} is above {most:f}.")


def _price_to_expect(facts: Facts, command: Command) -> Decimal | None:
    """The highest price the order may well trade at; None if it cannot be known.

    Only the limit of a BUY is a ceiling. A SELL with a limit, or a stop, may trade at the market's price instead, so
    without that price nothing is known of it, however low the price that the order names.
    """
    if command.side is OrderSide.BUY and command.limit_price is not None:
        return command.limit_price
    if facts.reference_price is None:
        return None
    named = [price for price in (command.limit_price, command.stop_price) if price is not None]
    return max([facts.reference_price, *named])


def _collar(bps: int, facts: Facts, command: Command) -> _Result:
    """Every price that the order names is judged; a market order names none."""
    prices = [price for price in (command.limit_price, command.stop_price) if price is not None]
    if not prices:
        return _NOT_APPLICABLE
    if facts.reference_price is None:
        return _unknown(RefusalCode.PRICE_OUTSIDE_COLLAR, "reference price")
    # Multiplied and not divided: exact, so the edge of the collar is inside it.
    farthest = _EXACTLY.multiply(Decimal(bps), facts.reference_price)
    for price in prices:
        if _EXACTLY.multiply(abs(price - facts.reference_price), _BASIS_POINTS) > farthest:
            return _refused(
                RefusalCode.PRICE_OUTSIDE_COLLAR,
                f"The price {price:f} is more than {bps} basis points from {facts.reference_price:f}.",
            )
    return _PASSED


def _rate(most: int, before: int | None, period: str) -> _Result:
    if before is None:
        return _unknown(RefusalCode.ORDER_RATE_ABOVE_LIMIT, f"number of orders in the last {period}")
    if before < most:
        return _PASSED
    return _refused(RefusalCode.ORDER_RATE_ABOVE_LIMIT, f"There were {before} orders in the last {period}, of {most}.")
