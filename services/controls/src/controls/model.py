"""The nouns of controls. Whether a command passes them is `control_rules`' to say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, time
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from control_rules import Command, Window

CONTROLS_PREMIUM = "controls_premium"
CONTROL_UPDATED = "control.updated"
DAILY_LOSS_BREACHED = "daily_loss.breached"
"""Of intents: an account lost more since its day began than `max_daily_loss`."""
EVENT_TYPES = (CONTROL_UPDATED,)
TIME_FIELDS = ("trading_start", "trading_end", "stale_order_millis")


class AccountNotFound(Exception):
    """There is nothing here that you may see."""

    code = "not_found"


class ControlNotFound(Exception):
    """There is no such control."""

    code = "not_found"


class WrongEnvironment(Exception):
    """The API key is of another environment than the account."""

    code = "forbidden"


class EntitlementRequired(Exception):
    """The organization lacks the entitlement controls_premium; without it a control can be removed or loosened only."""

    problem: Mapping[str, Any] = {"entitlement": CONTROLS_PREMIUM}


class NothingToDo(Exception):
    """The patch of a control that is not there sets nothing."""

    code = "invalid"
    problem: Mapping[str, Any] = {
        "errors": [{"pointer": "", "code": "nothing_to_do", "message": "must set something: there is no control yet"}]
    }

    def __init__(self) -> None:
        super().__init__("Some fields are not acceptable.")


class VersionMismatch(Exception):
    """The resource has another version."""

    code = "precondition_failed"


class EmptyWindow(Exception):
    """The trading window would have no moment in it."""

    code = "invalid"

    def __init__(self, field_name: str) -> None:
        super().__init__("Some fields are not acceptable.")
        message = "the trading window must not be empty: start and end must differ, and midnight alone ends nothing"
        self.problem = {"errors": [{"pointer": f"/{field_name}", "code": "empty_window", "message": message}]}


@dataclass(frozen=True)
class Account:
    id: UUID
    organization_id: UUID
    environment: str


@dataclass(frozen=True)
class Scope:
    """What a control is about: an organization, one of its accounts, or a symbol on one."""

    organization_id: UUID
    account_id: UUID | None = None
    symbol: str | None = None


@dataclass(frozen=True, kw_only=True)
class Control:
    organization_id: UUID
    created_at: datetime
    updated_at: datetime
    version: int


def value(control: Control) -> dict[str, Any]:
    """What the control says, as JSON: its fields beside those that say whose it is and when it was changed."""
    said = {part.name: getattr(control, part.name) for part in fields(control) if part.name not in _ABOUT}
    return {name: _as_json(said[name]) for name in said}


_ABOUT = ("organization_id", "account_id", "symbol", "created_at", "updated_at", "version")


def _as_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    return value.isoformat() if isinstance(value, time) else value


@dataclass(frozen=True, kw_only=True)
class OrganizationSwitch(Control):
    trading_state: str
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class AccountSwitch(Control):
    account_id: UUID
    trading_state: str
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Limits(Control):
    """What an account and a symbol may both limit."""

    account_id: UUID
    max_quantity: Decimal | None
    max_notional: Decimal | None
    price_collar_bps: int | None
    max_orders_per_minute: int | None
    max_orders_per_day: int | None
    max_position_quantity: Decimal | None
    max_position_notional: Decimal | None
    max_open_orders: int | None
    allow_short: bool | None


@dataclass(frozen=True, kw_only=True)
class AccountLimits(Limits):
    max_gross_exposure: Decimal | None
    max_daily_loss: Decimal | None
    allowed_symbols: Sequence[str] | None
    denied_symbols: Sequence[str] | None


@dataclass(frozen=True, kw_only=True)
class SymbolLimits(Limits):
    symbol: str


@dataclass(frozen=True, kw_only=True)
class SymbolManual(Control):
    account_id: UUID
    symbol: str
    manually_disabled: bool
    manual_reason: str | None


@dataclass(frozen=True, kw_only=True)
class SymbolTime(Control):
    account_id: UUID
    symbol: str
    trading_start: time | None
    trading_end: time | None
    stale_order_millis: int | None


_STRICTNESS = ("ACTIVE", "REDUCING", "HALTED")
_NOT_RULES = frozenset(
    ("organization_id", "account_id", "symbol", "created_at", "updated_at", "version", "reason", "manual_reason")
) | {"trading_start", "trading_end"}  # which are one rule together


def is_loosening(before: Control, after: Control | None) -> bool:
    """Whether everything that passes the control before it is changed still passes afterwards. None is no control."""
    if after is None:
        return True
    if isinstance(before, SymbolTime) and isinstance(after, SymbolTime) and not _window(after).covers(_window(before)):
        return False
    names = {item.name for item in fields(before)} - _NOT_RULES
    return all(_is_looser(name, getattr(before, name), getattr(after, name)) for name in names)


def _window(control: SymbolTime) -> Window:
    return Window(control.trading_start, control.trading_end)


_LOOSER: Mapping[str, Callable[[Any, Any], bool]] = {
    "manually_disabled": lambda _, after: not after,
    "allow_short": lambda _, after: bool(after),
    "allowed_symbols": lambda before, after: before is not None and set(after) >= set(before),
    "denied_symbols": lambda before, after: set(after) <= set(before or ()),
}


def _is_looser(name: str, before: Any, after: Any) -> bool:
    """Of one field: None sets no limit. To change one that is not known here does not count as loosening."""
    if after is None or after == before:
        return True
    if name == "trading_state":
        return _STRICTNESS.index(after) < _STRICTNESS.index(before)
    if name in _LOOSER:
        return _LOOSER[name](before, after)
    is_upper_bound = name.startswith("max_") or name in ("price_collar_bps", "stale_order_millis")
    return bool(is_upper_bound and before is not None and after > before)


@dataclass(frozen=True)
class TimePatch:
    """What to set, and which fields to remove."""

    changes: Mapping[str, Any]
    clear: frozenset[str] = frozenset()

    def applied_to(self, control: SymbolTime | None) -> dict[str, Any] | None:
        """The fields afterwards, or None if it sets nothing and clears only what is not set."""
        before = {name: getattr(control, name, None) for name in TIME_FIELDS}
        if not self.changes and all(before[name] is None for name in self.clear):
            return None
        after = before | dict.fromkeys(self.clear) | dict(self.changes)
        if Window(after["trading_start"], after["trading_end"]).is_empty:
            raise EmptyWindow(
                next((name for name in ("trading_end", "trading_start") if name in self.changes), "clear")
            )
        return after


@dataclass(frozen=True)
class SymbolControls:
    """Every control of one symbol on an account; None is not set."""

    account_id: UUID
    organization_id: UUID
    symbol: str
    manual: SymbolManual | None = None
    time: SymbolTime | None = None
    limits: SymbolLimits | None = None


class Actor(NamedTuple):
    """Who changed a control: api_key, user, service_account or system."""

    type: str
    id: str


LOSS_GUARD = Actor("system", "loss-guard")
"""Sets an account to REDUCING after its max_daily_loss."""


@dataclass(frozen=True)
class ControlChange:
    """One line of the history: what a control said before and after, None where there was none."""

    id: int
    account_id: UUID | None
    organization_id: UUID
    symbol: str | None
    control: str
    version: int
    value_before: Mapping[str, Any] | None
    value_after: Mapping[str, Any] | None
    actor: Actor
    request_id: str | None
    created_at: datetime


@dataclass(frozen=True)
class Preview:
    """A command to be judged as if submitted now, or at a given moment; `facts` replace those that a submit would use.

    A REPLACE may name its intent, which is then left out of what is open.
    """

    command: Command
    at: datetime | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    intent_id: UUID | None = None
    filled_quantity: Decimal | None = None

    def overrides(self, at: datetime) -> dict[str, Any]:
        """The facts that the caller gives; a price of theirs is of that moment, an equity of theirs of that day."""
        given = dict(self.facts)
        if "day_start_equity" in given:
            given["equity_day_ends_at"] = None
        if given.get("reference_price") is not None:
            given |= {"reference_price_source": "caller", "reference_price_at": at}
        return given

    def completed(self, filled_quantity: Decimal | None) -> Command:
        """The command with what is filled of its intent, unless the caller says otherwise."""
        filled = filled_quantity if self.filled_quantity is None else self.filled_quantity
        return replace(self.command, filled_quantity=filled or Decimal(0))
