"""The story of one intent: its commands, the calls to the broker that they took, and what the broker reported."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import Actor

COMMAND, CALL, REPORT = "COMMAND", "CALL", "REPORT"
KINDS = (COMMAND, CALL, REPORT)
"""In the order in which entries of the same moment are shown."""


class TimelineKey(NamedTuple):
    """The place of an entry. Moments are the database's; the last part tells entries of one kind and moment apart."""

    at: datetime
    kind: int
    name: str


class GivenCommand(NamedTuple):
    key: TimelineKey
    sequence: int
    action_id: UUID
    type: str
    payload: Mapping[str, Any]
    actor: Actor
    reason: str | None
    controls: Mapping[str, Any]
    from_status: str | None
    to_status: str
    request_id: str | None
    traceparent: str | None


class MadeCall(NamedTuple):
    """`times` calls that came out alike: `key.at` is when the first began, `milliseconds` how long the last took."""

    key: TimelineKey
    action_id: UUID
    verb: str
    result: str
    reason: str | None
    milliseconds: float
    times: int
    last_started_at: datetime


class LoggedReport(NamedTuple):
    key: TimelineKey
    sequence: int
    type: str
    occurred_at: datetime
    from_status: str | None
    to_status: str | None
    traceparent: str | None
    payload: Mapping[str, Any]


TimelineEntry = GivenCommand | MadeCall | LoggedReport
