"""The four states of outbox rows, such that somebody who did not write the relay knows what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_MEANINGS = {
    "pending": ("going", "It waits for a relay, or for its next turn after an attempt."),
    "processing": ("going", "A relay has claimed it. A claim older than five seconds is taken back by the next relay."),
    "failed": ("bad", "It reached the attempt limit and is never tried again by itself."),
    "completed": ("good", "It was delivered. Nothing is left to do."),
}


@dataclass(frozen=True)
class State:
    """One of the states, with its rows by event type."""

    name: str
    colour: str
    meaning: str
    count: int
    share: int
    """Of the fullest state, in per cent; at least one where there is a row, so that it can be seen."""
    oldest_at: str | None
    entries: list[Mapping[str, Any]] = field(default_factory=list)


def states(report: Mapping[str, Any]) -> list[State]:
    """All four, also those that are empty."""
    most = max((report[name] for name in _MEANINGS), default=0)
    return [_state(name, report, most) for name in _MEANINGS]


def unanswered(report: Mapping[str, Any]) -> int:
    """Failed rows that nobody has redriven."""
    return int(report["failed"]) - int(report["redriven"])


def _state(name: str, report: Mapping[str, Any], most: int) -> State:
    entries = [entry for entry in report["entries"] if entry["status"] == name]
    oldest = min((entry["oldest_created_at"] for entry in entries), default=None)
    count = int(report[name])
    share = max(1, round(100 * count / most)) if count else 0
    return State(name, *_MEANINGS[name], count, share, oldest, entries)
