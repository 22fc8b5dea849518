"""The four states of outbox rows, such that somebody who did not write the relay knows what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_COLOURS = {"pending": "going", "processing": "going", "failed": "bad", "completed": "good"}


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


def states(report: Mapping[str, Any], meanings: Mapping[str, str]) -> list[State]:
    """All four, also those that are empty."""
    most = max(report[name] for name in _COLOURS)
    return [_state(name, meanings[name], report, most) for name in _COLOURS]


def unanswered(report: Mapping[str, Any]) -> int:
    """Failed rows that nobody has redriven."""
    return int(report["failed"]) - int(report["redriven"])


def _state(name: str, meaning: str, report: Mapping[str, Any], most: int) -> State:
    entries = [entry for entry in report["entries"] if entry["status"] == name]
    oldest = min((entry["oldest_created_at"] for entry in entries), default=None)
    count = int(report[name])
    share = max(1, round(100 * count / most)) if count else 0
    return State(name, _COLOURS[name], meaning, count, share, oldest, entries)
