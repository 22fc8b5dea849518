"""The timeline of an order, in lines: when, what, and the facts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tip.moments import clock
from tip.names import actor_name
from tip.plain import short

if TYPE_CHECKING:
    from tip_client.models.timeline import TimelineCall, TimelineCommand, TimelineEntry, TimelineReport
    from tip_client.models.trading import ActionControls

Line = tuple[str, str, str]

_COMMANDS = {"CREATE": "submitted", "REPLACE": "replace", "CANCEL": "cancel"}


def timeline_lines(entries: Iterable["TimelineEntry"], names: Mapping[str, str]) -> Iterator[Line]:
    for entry in entries:
        at = clock(entry.at, milliseconds=True)
        for word, text in _facts(entry, names):
            yield at, word, text


def _facts(entry: "TimelineEntry", names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if entry.command:
        yield from _command(entry.command, names)
    if entry.call:
        yield "called", _call(entry.call)
    if entry.report:
        yield from _report(entry.report)


def _command(command: "TimelineCommand", names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    request = f", request {command.request_id}" if command.request_id else ""
    reason = f", {command.reason}" if command.reason else ""
    word = _COMMANDS.get(command.type, command.type.lower())
    yield word, f"{actor_name(command.actor, names)}{request}{reason}"
    yield command.controls.decision.lower(), _checks(command.controls)


def _checks(controls: "ActionControls") -> str:
    """`account v1, symbol v4: 2 checks`."""
    looked_at = dict.fromkeys(f"{check.control} v{check.version}" for check in controls.checks if check.version)
    count = len(controls.checks)
    return f"{', '.join(looked_at) or 'no controls'}: {count} {'check' if count == 1 else 'checks'}"


def _call(call: "TimelineCall") -> str:
    """`create: answered in 11 ms`."""
    times = f", {call.times} times until {clock(call.last_at, milliseconds=True)}" if call.times > 1 else ""
    reason = f" ({call.reason})" if call.reason else ""
    return f"{call.verb}: {call.result.lower()} in {call.duration_ms:.0f} ms{reason}{times}"


def _report(report: "TimelineReport") -> Iterator[tuple[str, str]]:
    payload = report.payload
    if report.type == "BROKER_TRADE":
        yield "fill", f"{payload.get('quantity')} @ {payload.get('price')}, execution {short(report.execution_id)}"
    elif report.type == "BROKER_POSITION":
        yield "position", f"{payload.get('quantity')} {payload.get('symbol')}"
    else:
        yield str(report.to_status or report.type).lower(), _order_report(report, payload)


def _order_report(report: "TimelineReport", payload: Mapping[str, Any]) -> str:
    filled, average = payload.get("filled_quantity"), payload.get("average_fill_price")
    parts = (
        f"{filled} of {payload.get('quantity')} @ {average}" if average else None,
        f"broker order {short(report.broker_order_id)}" if report.broker_order_id else None,
        payload.get("reason_code"),
        payload.get("reason"),
    )
    return ", ".join(str(part) for part in parts if part)
