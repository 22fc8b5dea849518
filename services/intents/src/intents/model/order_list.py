"""Intents as orders: which of an account's are listed, and how each is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import Action
from intents.model.lifecycle import TERMINAL, Status

OPEN_STATUSES = tuple(status for status in Status if status not in TERMINAL)
STATUS_FILTERS: Mapping[str, Sequence[Status]] = {
    "open": OPEN_STATUSES,
    "closed": tuple(status for status in Status if status in TERMINAL),
    **{status.value: (status,) for status in Status},
}


class OrderFilter(NamedTuple):
    """Which orders are wanted, created from `since` on and before `until`, and in which order of time."""

    statuses: Sequence[Status] = tuple(Status)
    symbol: str | None = None
    tag: str | None = None
    client_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    descending: bool = False
    group_id: UUID | None = None

    @property
    def is_exact(self) -> bool:
        """Whether one index has exactly these orders; else candidates are read and some of them dropped."""
        others = self.symbol is None and self.client_id is None and len(self.statuses) == len(Status)
        filters = (self.tag is not None) + (self.group_id is not None)
        return filters == 0 or (others and filters == 1)


class OrderKey(NamedTuple):
    """An order's place in the list."""

    created_at: datetime
    intent_id: UUID


@dataclass(frozen=True, slots=True)
class Order:
    """An intent as it stands; `spec` is that of the order after its last replacement."""

    client_id: str | None
    tags: Sequence[str]
    spec: Mapping[str, Any]
    created_at: datetime
    last_action: Action
    extended_hours: bool = False

    @property
    def key(self) -> OrderKey:
        return OrderKey(self.created_at, self.last_action.intent_id)
