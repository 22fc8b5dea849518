"""How trading on an account goes: the last hour, minute by minute, and what waits at this moment."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from console import plots
from console.api import MOST, ApiProblem, Caller, PlatformAway


def read(api: Caller, account_id: UUID, now: datetime) -> dict[str, Any]:
    """What the API has of it: lists of the hour for the plots, statistics for the totals."""
    path, axis = f"/v1/accounts/{account_id}", plots.Axis.until(now)
    since = {"from": axis.start.isoformat()}
    orders = api.all(f"{path}/orders", order="desc", **since)
    refusals = api.all(f"{path}/refusals", **since)
    waiting = api.all(f"{path}/orders", status="open", order="desc")
    filled = fill_times(orders)
    values = [value for _, value in filled]
    return {
        "axis": axis,
        "orders": plots.counts(axis, (_moment(order["created_at"]) for order in orders)),
        "refusals": plots.counts(axis, (_moment(refusal["created_at"]) for refusal in refusals)),
        "fills": plots.latencies(axis, filled),
        "refusal_count": len(refusals),
        "fill_count": len(filled),
        "fill_p50": plots.percentile(values, 50),
        "fill_p99": plots.percentile(values, 99),
        "orders_since": _reach(orders),
        "refusals_since": _reach(refusals),
        "statistics": api.get(f"{path}/intents/stats", time_window="last_hour"),
        "unknown": unknown_outcomes(waiting),
        "unknown_since": _reach(waiting),
        "outbox": find_outbox(api),
        "streams": find_streams(api, account_id),
    }


def fill_times(orders: Iterable[Mapping[str, Any]]) -> list[tuple[datetime, float]]:
    """Of each filled order the moment at which that was recorded, and how many milliseconds after its submit."""
    filled = [order for order in orders if order["state"]["status"] == "FILLED"]
    moments = [(_moment(order["created_at"]), _moment(order["state"]["updated_at"])) for order in filled]
    return [(end, (end - start).total_seconds() * 1000) for start, end in moments]


def unknown_outcomes(orders: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Orders of which nobody can say yet whether the broker has them."""
    return [order for order in orders if order["state"]["outcome"] == "unknown"]


def find_outbox(api: Caller) -> dict[str, Any] | None:
    """For whoever runs the platform; None for everybody else."""
    try:
        found: dict[str, Any] = api.get("/v1/accounts/outbox/health")
    except ApiProblem as problem:
        if problem.status in (401, 403):
            return None
        raise
    return found


def find_streams(api: Caller, account_id: UUID) -> dict[str, Any] | None:
    """Open streams; None while the stream gateway cannot count them, without which all else is known."""
    try:
        found: dict[str, Any] = api.get(f"/v1/accounts/{account_id}/events/streams")
    except PlatformAway:
        return None
    except ApiProblem as problem:
        if problem.status == 503:
            return None
        raise
    return found


def _reach(newest_first: list[Mapping[str, Any]]) -> str | None:
    """How far back a list goes that was not read to its end; None if it was."""
    return str(newest_first[-1]["created_at"]) if len(newest_first) >= MOST else None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
