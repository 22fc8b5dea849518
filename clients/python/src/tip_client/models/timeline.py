"""The story of an order."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tip_client.models.trading import ActionControls, Actor
from tip_client.words import CommandType, Status


@dataclass(frozen=True)
class TimelineCommand:
    """A command, who gave it, and what decided it."""

    type: CommandType
    payload: Mapping[str, Any]
    actor: Actor
    reason: str | None
    controls: ActionControls
    from_status: Status | None
    to_status: Status
    request_id: str | None


@dataclass(frozen=True)
class TimelineCall:
    """A call to the broker. Those that were repeated and came out alike are one: `times`, from `at` to `last_at`."""

    verb: str
    """create, replace, cancel, find or read."""
    result: str
    reason: str | None
    duration_ms: float
    """Of the last one."""
    times: int
    last_at: datetime


@dataclass(frozen=True)
class TimelineReport:
    """What the broker reported: BROKER_ORDER, BROKER_TRADE, or BROKER_POSITION after a fill."""

    type: str
    occurred_at: datetime
    from_status: Status | None
    to_status: Status | None
    broker_order_id: str | None
    execution_id: str | None
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class TimelineEntry:
    """Of `command`, `call` and `report` it has the one of its kind."""

    at: datetime
    kind: str
    sequence: int | None
    action_id: str | None
    trace_id: str | None
    command: TimelineCommand | None
    call: TimelineCall | None
    report: TimelineReport | None
