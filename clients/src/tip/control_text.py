"""Controls and their changes, in a line each, and as JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tip.moments import age, clock
from tip.names import actor_name
from tip.plain import json_of, short, text_of

if TYPE_CHECKING:
    from tip_client.models.controls import ControlChange, SymbolControls, SymbolManualControl, SymbolTimeControl

TITLES = ("SYMBOL", "MANUAL", "HOURS", "STALE AFTER", "LIMITS", "WHY")
CHANGE_TITLES = ("TIME", "WHO", "CONTROL", "SYMBOL", "VERSION", "CHANGE", "REQUEST")
ABSENT = frozenset({"bulk_operation_id", "manual_reason", "time_zone", "trading_end", "trading_start"})
"""Members that the API leaves out where they are not set."""


def control_json(value: Any) -> Any:
    return _without_absent(json_of(value))


def _without_absent(shown: Any) -> Any:
    if isinstance(shown, list):
        return [_without_absent(item) for item in shown]
    if not isinstance(shown, dict):
        return shown
    return {name: _without_absent(item) for name, item in shown.items() if item is not None or name not in ABSENT}


def symbol_row(symbol: "SymbolControls") -> tuple[str, ...]:
    manual, hours, limits = symbol.manual, symbol.time, symbol.limits
    stale = stale_after(hours) if hours else "-"
    count = len(set_limits(json_of(limits))) if limits else 0
    why = text_of(manual.manual_reason) if manual else "-"
    return (symbol.symbol, manual_state(manual), trading_hours(hours), stale, str(count or "-"), why)


def manual_state(manual: "SymbolManualControl | None") -> str:
    if manual is None:
        return "-"
    return "disabled" if manual.manually_disabled else "enabled"


def trading_hours(hours: "SymbolTimeControl | None") -> str:
    """`09:30 to 16:00 Europe/Berlin`."""
    if hours is None or not (hours.trading_start or hours.trading_end):
        return "-"
    start, end = str(hours.trading_start or "00:00:00"), str(hours.trading_end or "24:00:00")
    return f"{start.removesuffix(':00')} to {end.removesuffix(':00')} {hours.time_zone or ''}".rstrip()


def stale_after(hours: "SymbolTimeControl") -> str:
    return "-" if hours.stale_order_millis is None else age(hours.stale_order_millis / 1000)


def symbol_text(control: "SymbolManualControl | SymbolTimeControl") -> str:
    """`GME is disabled: earnings (v3)`, `AAPL is traded 09:30 to 16:00, stale after 60 s (v1)`."""
    from tip_client.models.controls import SymbolManualControl

    version = f"(v{control.version})"
    if isinstance(control, SymbolManualControl):
        reason = f": {control.manual_reason}" if control.manual_reason else ""
        return f"{control.symbol} is {manual_state(control)}{reason} {version}"
    hours = trading_hours(control)
    traded = "at all hours" if hours == "-" else hours
    stale = "never stale" if control.stale_order_millis is None else f"stale after {stale_after(control)}"
    return f"{control.symbol} is traded {traded}, its orders are {stale} {version}"


_ABOUT = frozenset({"account_id", "organization_id", "symbol", "created_at", "updated_at", "version"})


def set_limits(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are set, by name."""
    return {name: value for name, value in limits.items() if value is not None and name not in _ABOUT}


def change_row(change: "ControlChange", names: Mapping[str, str]) -> tuple[str, ...]:
    what = (change.control, text_of(change.symbol), f"v{change.version}", difference(change.from_, change.to))
    return (clock(change.created_at), actor_name(change.actor, names), *what, short(change.request_id))


def difference(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """What the control says now that it did not say before."""
    if after is None:
        return "removed"
    former = before or {}
    changed = {name: value for name, value in after.items() if former.get(name) != value}
    return ", ".join(f"{name} {'none' if value is None else value}" for name, value in changed.items()) or "unchanged"
