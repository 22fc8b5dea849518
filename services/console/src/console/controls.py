"""Changes of controls: what the API is sent, and what that does in words; and the history of such changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import quote

STATES = {
    "ACTIVE": "Every order that the controls allow.",
    "REDUCING": "Only what reduces a position.",
    "HALTED": "No order. What is open can be canceled.",
}
"""Each trading state, and what is accepted in it."""
_STATE_WORDS = {"ACTIVE": "Set to active", "REDUCING": "Set to reducing", "HALTED": "Halt"}
_TITLES = {
    "account_switch": "Trading state",
    "account_limits": "Limits of the account",
    "symbol_manual": "Switch of the symbol",
    "symbol_time": "Trading window",
    "symbol_limits": "Limits of the symbol",
}
_LONGEST_VALUE = 60
_MOST_MILLIS = 10**9


@dataclass(frozen=True)
class Change:
    """A request below `/v1/controls/accounts/{account_id}`."""

    method: str
    path: str
    words: str
    body: Mapping[str, Any] | None = None


def set_state(state: str, reason: str) -> Change:
    return Change("PUT", "", _STATE_WORDS.get(state, state), {"trading_state": state, "reason": reason or None})


def halt_and_cancel(open_orders: int | None, reason: str) -> Change:
    """`open_orders` is how many there are; None: that is not known."""
    body = {"trading_state": "HALTED", "reason": reason or None, "cancel_open": True}
    orders = "all open orders" if open_orders is None else counted(open_orders, "open order")
    return Change("PUT", "", f"Halt and cancel {orders}", body)


def switch_symbol(symbol: str, reason: str, *, is_off: bool) -> Change:
    body = {"manually_disabled": is_off, **({"manual_reason": reason} if reason else {})}
    return Change("PUT", _symbol(symbol), f"{'Disable' if is_off else 'Enable'} {symbol}", body)


def set_window(symbol: str, start: str, end: str, stale_seconds: str) -> Change:
    """All of the window as the form has it: what is empty is cleared."""
    values = {
        "trading_start": _with_seconds(start),
        "trading_end": _with_seconds(end),
        "stale_order_millis": _millis(stale_seconds),
    }
    given = {name: value for name, value in values.items() if value != ""}
    cleared = [name for name in values if name not in given]
    hours = f"from {start or '00:00'} to {end or '24:00'}" if start or end else "all day"
    stale = f"orders are stale after {stale_seconds} s" if stale_seconds else "no order is ever stale"
    words = f"Set the trading window of {symbol}: {hours}, {stale}"
    return Change("PATCH", f"{_symbol(symbol)}/time", words, given | {"clear": cleared})


def set_limits(symbol: str | None, values: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Change:
    """All limits as the form has them; those of `before` that it leaves empty are removed."""
    removed = [name for name, value in (before or {}).items() if value is not None and name not in values]
    gone = f"; remove {', '.join(removed).replace('_', ' ')}" if removed else ""
    words = f"Set limits of {symbol or 'the account'}: {difference(before, values)}{gone}"
    return Change("PUT", f"{_symbol(symbol)}/limits", words, values)


def remove_switch(symbol: str) -> Change:
    return Change("DELETE", _symbol(symbol), f"Remove the switch of {symbol}")


def remove_window(symbol: str) -> Change:
    return Change("DELETE", f"{_symbol(symbol)}/time", f"Remove the trading window of {symbol}")


def remove_limits(symbol: str | None) -> Change:
    return Change("DELETE", f"{_symbol(symbol)}/limits", f"Remove all limits of {symbol or 'the account'}")


def _symbol(symbol: str | None) -> str:
    return f"/symbols/{quote(symbol, safe='')}" if symbol else ""


def _with_seconds(clock: str) -> str:
    """Browsers leave them out where they are zero."""
    return f"{clock}:00" if clock.count(":") == 1 else clock


def _millis(seconds: str) -> int | str:
    """Of what is no number, or one that no JSON should hold, the API says that it is none."""
    try:
        millis = Decimal(seconds) * 1000
        return int(millis) if abs(millis) < _MOST_MILLIS else seconds
    except ArithmeticError:
        return seconds


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def title(control: str) -> str:
    """What the history calls a control."""
    return _TITLES.get(control, control.replace("_", " ").capitalize())


def difference(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """What the control says now that it did not say before."""
    if after is None:
        return "removed"
    former = before or {}
    changed = [
        f"{name.replace('_', ' ')} {_short(value)}" for name, value in after.items() if former.get(name) != value
    ]
    return ", ".join(changed) or "unchanged"


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if value is None or isinstance(value, bool):
        text = {None: "none", True: "yes", False: "no"}[value]
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"


def last_changes(history: list[Mapping[str, Any]]) -> dict[tuple[str, str | None], Mapping[str, Any]]:
    """The newest change of each control and symbol; the history is newest first."""
    return {(change["control"], change["symbol"]): change for change in reversed(history)}
