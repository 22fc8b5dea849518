"""What controls refused: which refusals are listed, how each is shown, and which of them become events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import Actor

MOST_EVENTS_A_MINUTE = 60
"""Of one account: the log is kept for ever, and refused orders must not flood it."""


class RefusalFilter(NamedTuple):
    """Refusals from `since` on and before `until`, of a symbol, with a code among their reasons."""

    since: datetime | None = None
    until: datetime | None = None
    symbol: str | None = None
    code: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the index has exactly these; else candidates are read and some of them dropped."""
        return self.symbol is None and self.code is None


class RefusalKey(NamedTuple):
    """A refusal's place in the list."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class RefusedCommand:
    account_id: UUID
    organization_id: UUID
    id: UUID
    type: str
    symbol: str
    order_side: str | None
    spec: Mapping[str, Any] | None
    ref_intent_id: UUID | None
    actor: Actor
    reasons: Sequence[Mapping[str, Any]]
    request_id: str | None
    created_at: datetime

    @property
    def key(self) -> RefusalKey:
        return RefusalKey(self.created_at, self.id)


def refusal_record(refused: RefusedCommand) -> dict[str, Any]:
    """The refusal as the stream shows it; the list adds when it was."""
    return {
        "id": str(refused.id),
        "type": refused.type,
        "symbol": refused.symbol,
        "order_side": refused.order_side,
        "spec": refused.spec,
        "ref_intent_id": refused.ref_intent_id and str(refused.ref_intent_id),
        "actor": refused.actor._asdict(),
        "reasons": list(refused.reasons),
        "request_id": refused.request_id,
    }


def to_log(refused: Sequence[RefusedCommand], logged: Mapping[datetime, int]) -> list[RefusedCommand]:
    """The first so many of each minute; `logged` is how many of a minute are in the log already."""
    counts: Counter[datetime] = Counter(logged)
    chosen = []
    for refusal in refused:
        minute = refusal.created_at.astimezone(UTC).replace(second=0, microsecond=0)
        if counts[minute] < MOST_EVENTS_A_MINUTE:
            chosen.append(refusal)
        counts[minute] += 1
    return chosen
