"""The wait queue of an open circuit: what is in it is claimed when the breaker has a try for it, and seldom before.

Cancels, and what may have been sent, come first: they reduce risk, and somebody waits to know. What a broker that could
be reached has failed to answer goes to the end, whatever it is: otherwise a command that always fails would take every
try.
"""

import math
import random
from datetime import datetime, timedelta

from intents.execution.model.commands import LeasedCommand
from intents.execution.model.verdicts import RetryLater
from intents.model import Status

WAITING_SECONDS = 240.0  # after which it is decided again what controls, or the end of its account, make of a command
SPREAD_SECONDS = 120.0  # so that what began to wait at one moment is not decided again at one moment
AHEAD = timedelta(days=3650)  # longer than anything waits


def waits(command: LeasedCommand, *, has_failed: bool, reason: str = "circuit_open") -> RetryLater:
    """Into the queue. What had a place keeps it, unless it comes first now."""
    seconds = WAITING_SECONDS + random.uniform(0, SPREAD_SECONDS)  # noqa: S311 - guards nothing # nosec B311
    place = _place(command, has_failed=has_failed)
    return RetryLater(min(seconds, _until_stale(command)), reason, waiting_since=place)


def _place(command: LeasedCommand, *, has_failed: bool) -> datetime:
    own = command.waiting_since or command.now
    return min(own, command.now - AHEAD) if _comes_first(command) and not has_failed else own


def _comes_first(command: LeasedCommand) -> bool:
    is_cancel = command.type == "CANCEL" or command.status is Status.PENDING_CANCEL
    return is_cancel or command.started_before is not None


def _until_stale(command: LeasedCommand) -> float:
    """Seconds until a control has an order that was not sent expire."""
    control = command.facts.controls.symbol_time if command.facts.controls else None
    if command.type != "CREATE" or command.started_before or control is None or control.stale_order_millis is None:
        return math.inf
    left = command.created_at + timedelta(milliseconds=control.stale_order_millis) - command.now
    return left.total_seconds() if left > timedelta() else math.inf  # a child of an order group is never too old
