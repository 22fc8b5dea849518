"""The rule itself. Every control that is set gives one check; each limit of a set of limits gives its own.

CANCEL always passes, because it only reduces risk. A control that lacks a fact it needs is NOT_EVALUATED, and what
was not evaluated does not pass: the refusal's message names the missing fact. Its code is the control's usual one, or
REFERENCE_PRICE_UNKNOWN where it is the price that is missing or too old.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfoNotFoundError

from control_rules.bounds import key_bounds
from control_rules.facts import (
    Check,
    Command,
    CommandType,
    Decision,
    Facts,
    MissingPrices,
    Outcome,
    Refusal,
    RefusalCode,
    Switch,
    TradingState,
    Verdict,
)
from control_rules.limits import GROSS_EXPOSURE, account_limits, no_price, symbol_limits
from control_rules.positions import reduces
from control_rules.results import NOT_APPLICABLE, PASSED, Result, refused, unknown
from control_rules.windows import wall_clock

KEY_VERSION = 1
"""API keys have no versions: their changes are in identity's audit log."""


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


def evaluate(facts: Facts, command: Command, now: datetime) -> Decision:
    """Whether the command may pass at this moment, and every reason to refuse it."""
    findings = list(_findings(facts, command.counted(facts.usable_price(now)), now))
    if command.type is CommandType.CANCEL:
        findings = [finding.not_applicable for finding in findings]
    refusals = [
        Refusal(finding.code, finding.control, finding.version, finding.message) for finding in findings if finding.code
    ]
    return Decision(
        Verdict.REFUSED if refusals else Verdict.ALLOWED,
        tuple(finding.check for finding in findings),
        tuple(sorted(refusals, key=_is_for_want_of_a_price)),
    )


def _is_for_want_of_a_price(refusal: Refusal) -> bool:
    """Such a refusal comes last: what refuses for sure says more, and a price would not help."""
    return refusal.code is RefusalCode.REFERENCE_PRICE_UNKNOWN


def missing_prices(decision: Decision, command: Command) -> MissingPrices | None:
    """The prices with which the command may pass; None if it passes, or something else speaks against it."""
    codes = {refusal.code for refusal in decision.refusals}
    if codes != {RefusalCode.REFERENCE_PRICE_UNKNOWN}:
        return None
    of_others = any(refusal.control == f"account_limits.{GROSS_EXPOSURE}" for refusal in decision.refusals)
    return MissingPrices(command.symbol, of_others)


def _findings(facts: Facts, command: Command, now: datetime) -> Iterator[_Finding]:
    yield _Finding("account", facts.account_version, *_account(facts))
    if command.notional is not None:
        yield _Finding("notional", facts.account_version, *_quantity_known(facts, now))
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
    if limits := facts.account_limits:
        for name, result in account_limits(limits, facts, command, now):
            yield _Finding(f"account_limits.{name}", limits.version, *result)
    if limits := facts.symbol_limits:
        for name, result in symbol_limits(limits, facts, command, now):
            yield _Finding(f"symbol_limits.{name}", limits.version, *result)
    if bounds := facts.key_bounds:
        for name, result in key_bounds(bounds, facts, command, now):
            yield _Finding(f"api_key.{name}", KEY_VERSION, *result)


def _account(facts: Facts) -> Result:
    if facts.account_disabled:
        return refused(RefusalCode.ACCOUNT_DISABLED, "The account is disabled or is being deleted.")
    return PASSED


def _quantity_known(facts: Facts, now: datetime) -> Result:
    """Without a price nobody knows by which quantity an order by its notional counts, for it and for later orders."""
    return no_price(facts, now) if facts.usable_price(now) is None else PASSED


def _switch(switch: Switch, of: str, facts: Facts, command: Command) -> Result:
    if switch.trading_state is TradingState.HALTED:
        return refused(RefusalCode.TRADING_HALTED, _because(f"Trading of the {of} is halted", switch.reason))
    if switch.trading_state is TradingState.REDUCING:
        return _reducing(switch, of, facts, command)
    return PASSED


def _reducing(switch: Switch, of: str, facts: Facts, command: Command) -> Result:
    reducing = reduces(facts, command)
    if isinstance(reducing, str):
        return unknown(RefusalCode.TRADING_REDUCING, reducing)
    if reducing:
        return PASSED
    return refused(
        RefusalCode.TRADING_REDUCING,
        _because(f"The {of} only lets through what reduces the position", switch.reason),
    )


def _because(sentence: str, reason: str | None) -> str:
    return f"{sentence}: {reason}" if reason else f"{sentence}."


def _manual(facts: Facts, command: Command) -> Result:
    control = facts.symbol_manual
    if control and control.manually_disabled:
        return refused(RefusalCode.SYMBOL_DISABLED, _because(f"{command.symbol} is disabled", control.manual_reason))
    return PASSED


def _time(facts: Facts, now: datetime) -> Result:
    if facts.symbol_time is None or not facts.symbol_time.window.is_set:
        return NOT_APPLICABLE
    window = facts.symbol_time.window
    try:
        moment = wall_clock(now, facts.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return unknown(RefusalCode.OUTSIDE_TRADING_WINDOW, "account's time zone")
    if window.contains(moment):
        return PASSED
    return refused(
        RefusalCode.OUTSIDE_TRADING_WINDOW,
        f"It is {moment:%H:%M:%S} in {facts.time_zone}; the trading window is {window}.",
    )
