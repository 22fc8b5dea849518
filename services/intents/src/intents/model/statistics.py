"""What is reported about an account's intents, from counts of what is in its log."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.lifecycle import Status
from intents.model.orders import CommandType

TOP_SYMBOLS = 20
TOP_TAGS = 20
BINS_PER_OCTAVE = 4  # a latency is known to within a fifth


class Window(NamedTuple):
    """How far back, and in buckets of which width the counts are kept for that."""

    length: timedelta | None
    width: str


WINDOWS: Mapping[str, Window] = {
    "last_hour": Window(timedelta(hours=1), "minute"),
    "last_day": Window(timedelta(days=1), "minute"),
    "last_week": Window(timedelta(days=7), "hour"),
    "last_month": Window(timedelta(days=30), "hour"),
    "all": Window(None, "day"),
}


class Count(NamedTuple):
    """How often `key` was seen: a type, a symbol, a tag, a status, a refusal code or a bin of latencies."""

    kind: str
    key: str
    amount: int


@dataclass(frozen=True)
class Statistics:
    account_id: UUID
    time_window: str
    since: datetime | None
    to: datetime
    total_actions: int
    total_intents: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    by_symbol: list[dict[str, Any]]
    fill_rate: float | None
    refusals: Mapping[str, int]
    latency_ms: Mapping[str, float | None]
    by_tag: list[dict[str, Any]]


def start(window: Window, now: datetime) -> datetime | None:
    """The beginning of the window, at the beginning of a bucket; None for everything there is."""
    if window.length is None:
        return None
    moment = (now - window.length).replace(second=0, microsecond=0)
    return moment if window.width == "minute" else moment.replace(minute=0)


def summarize(
    account_id: UUID, time_window: str, since: datetime | None, to: datetime, counts: Iterable[Count]
) -> Statistics:
    by_kind: dict[str, Counter[str]] = {}
    for kind, key, amount in counts:
        by_kind.setdefault(kind, Counter())[key] += amount
    types = by_kind.get("type", Counter())
    statuses = by_kind.get("status", Counter())
    intents = types[CommandType.CREATE]
    return Statistics(
        account_id=account_id,
        time_window=time_window,
        since=since,
        to=to,
        total_actions=sum(types.values()),
        total_intents=intents,
        by_type={str(type_): types[type_] for type_ in CommandType},
        by_status={str(status): statuses[status] for status in Status},
        by_symbol=_top(by_kind.get("symbol", Counter()), TOP_SYMBOLS, "symbol", "total_actions"),
        fill_rate=round(statuses[Status.FILLED] / intents, 6) if intents else None,
        refusals=dict(sorted(by_kind.get("refusal", Counter()).items())),
        latency_ms=_latencies(by_kind),
        by_tag=_top(by_kind.get("tag", Counter()), TOP_TAGS, "tag", "total_intents"),
    )


def _top(counts: Counter[str], most: int, name: str, total: str) -> list[dict[str, Any]]:
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]
    return [{name: key, total: count} for key, count in ranked]


def _latencies(by_kind: Mapping[str, Counter[str]]) -> dict[str, float | None]:
    return {
        f"{name}_p{percent}": percentile(by_kind.get(f"{name}_ms", Counter()), percent)
        for name in ("submit", "fill")
        for percent in (50, 95)
    }


def percentile(bins: Mapping[str, int], percent: int) -> float | None:
    """The upper edge of the bin in which the percentile lies."""
    total = sum(bins.values())
    seen = 0
    for key in sorted(bins, key=int):
        seen += bins[key]
        if bins[key] and seen * 100 >= total * percent:
            return round(float(2 ** (int(key) / BINS_PER_OCTAVE)), 2)
    return None
