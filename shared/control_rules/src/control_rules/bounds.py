"""Bounds of the API key that sends a command: the symbols it may trade, and what its orders may cost in a day."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from control_rules.days import end_of_day, has_begun_after
from control_rules.facts import EXACTLY, Command, Facts, KeyBounds, RefusalCode
from control_rules.limits import no_price, notional_to_expect
from control_rules.positions import reduces
from control_rules.results import PASSED, Result, refused, unknown


def key_bounds(bounds: KeyBounds, facts: Facts, command: Command, now: datetime) -> Iterator[tuple[str, Result]]:
    if bounds.symbols is not None:
        yield "symbols", _symbol(bounds.symbols, command)
    if bounds.max_notional_per_day is not None:
        yield "max_notional_per_day", _budget(bounds.max_notional_per_day, bounds, facts, command, now)


def key_charge(bounds: KeyBounds, facts: Facts, command: Command, now: datetime) -> Decimal | None:
    """What the command takes of the key's budget; None if that cannot be known.

    It is the notional that `max_notional` judges. What at most closes the position takes nothing, and a replacement
    only what it adds to what the order has taken already.
    """
    if reduces(facts, command) is True:
        return Decimal(0)
    notional = notional_to_expect(facts, command, now)
    return None if notional is None else max(Decimal(0), EXACTLY.subtract(notional, bounds.charged))


class KeySpending(NamedTuple):
    """What a key's orders came to in the day that ended, or ends, at `day_ends_at`."""

    day_ends_at: datetime
    spent: Decimal
    charged: Decimal


def with_spending(bounds: KeyBounds, read: KeySpending | None, now: datetime, time_zone: str) -> KeyBounds:
    """The bounds with what counts of it now: nothing once the next day has begun where the account is."""
    if read is None or has_begun_after(read.day_ends_at, now, time_zone):
        return replace(bounds, spent=Decimal(0), day_ends_at=end_of_day(now, time_zone))
    return replace(bounds, spent=read.spent, charged=read.charged, day_ends_at=read.day_ends_at)


def _symbol(symbols: tuple[str, ...], command: Command) -> Result:
    if command.symbol in symbols:
        return PASSED
    return refused(RefusalCode.KEY_SYMBOL_NOT_ALLOWED, f"{command.symbol} is not among the symbols of the API key.")


def _budget(most: Decimal, bounds: KeyBounds, facts: Facts, command: Command, now: datetime) -> Result:
    charge = key_charge(bounds, facts, command, now)
    if charge is None:
        return no_price(facts, now)
    if not charge:
        return PASSED
    if bounds.spent is None:
        return unknown(RefusalCode.KEY_NOTIONAL_ABOVE_LIMIT, "notional of the API key's orders of the day")
    if (total := EXACTLY.add(bounds.spent, charge)) <= most:
        return PASSED
    return refused(
        RefusalCode.KEY_NOTIONAL_ABOVE_LIMIT,
        f"The API key's orders of the day would come to {total:f}, of {most:f}: {bounds.spent:f} are spent.",
    )
