"""The events of an account's log, typed. What carries them, gRPC or Server-Sent Events, hands over the same JSON."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_client.errors import ConfigurationError, Reason
from tip_client.models.trading import Actor
from tip_client.orders import OrderSpec
from tip_client.records import parse
from tip_client.words import OrderKind, Side, Status


@dataclass(frozen=True)
class LogPosition:
    """A place in an account's log: `sequence` counts within one `epoch`. `str()` is what to store of it."""

    sequence: int
    epoch: str = ""

    def __str__(self) -> str:
        return f"{self.sequence}@{self.epoch}"

    @classmethod
    def of(cls, value: "LogPosition | str | int") -> "LogPosition":
        """The position that was stored; 0 is the beginning of the log."""
        if isinstance(value, LogPosition):
            return value
        sequence, _, epoch = str(value).partition("@")
        if not (sequence.isascii() and sequence.isdigit()):
            raise ConfigurationError("A position is a sequence, or <sequence>@<epoch>.")
        return cls(int(sequence), epoch)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LogPosition":
        return cls(int(data["sequence"]), str(data["epoch"]))


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened on an account."""

    position: LogPosition
    """Store it once the event is dealt with: events go on after it."""
    event_id: str
    trading_account_id: str
    occurred_at: datetime
    traceparent: str | None
    previous_hash: str | None
    hash: str | None


@dataclass(frozen=True, kw_only=True)
class OrderUpdate(Event):
    """An order changed at the broker: accepted, filled, replaced, canceled, rejected, expired."""

    intent_id: str
    broker_order_id: str | None
    symbol: str
    order_side: Side
    order_kind: OrderKind
    status: Status
    quantity: Decimal
    filled_quantity: Decimal
    leaves_quantity: Decimal
    average_fill_price: Decimal | None
    limit_price: Decimal | None
    stop_price: Decimal | None
    reason_code: str | None
    reason: str | None
    execution_id: str | None
    last_quantity: Decimal | None
    last_price: Decimal | None
    outcome: str | None
    reasons: tuple[Reason, ...]
    trail_amount: Decimal | None = None
    trail_percent: Decimal | None = None
    notional: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class PositionUpdate(Event):
    """A position as the broker reports it."""

    symbol: str
    quantity: Decimal
    last_price: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Fill(Event):
    """One fill."""

    intent_id: str
    broker_order_id: str | None
    execution_id: str | None
    symbol: str
    order_side: Side
    quantity: Decimal
    price: Decimal


@dataclass(frozen=True)
class CommandName:
    """CREATE, REPLACE or CANCEL."""

    type: str


@dataclass(frozen=True, kw_only=True)
class ActionAppended(Event):
    """A command was accepted and appended to the log."""

    id: str
    intent_id: str
    organization_id: str
    environment: str
    command: CommandName
    symbol: str
    order_side: Side
    spec: OrderSpec | None
    route_strategy: str
    ref_intent_id: str | None
    actor: Actor
    reason: str | None
    status: Status
    client_id: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ControlChanged(Event):
    """A control of the account, of one of its symbols or of its organization changed."""

    organization_id: str
    control: str
    symbol: str | None
    version: int
    deleted: bool
    actor: Actor | None


@dataclass(frozen=True, kw_only=True)
class AccountChanged(Event):
    """The account or one of its broker credentials changed."""

    organization_id: str
    event_type: str
    credential_id: str | None
    version: int


@dataclass(frozen=True, kw_only=True)
class Refusal(Event):
    """Controls refused a command. The first 60 of each minute are events; `client.refusals()` has all."""

    id: str
    type: str
    symbol: str
    order_side: Side | None
    spec: OrderSpec | None
    ref_intent_id: str | None
    actor: Actor
    reasons: tuple[Reason, ...]
    request_id: str | None


@dataclass(frozen=True, kw_only=True)
class UnknownEvent(Event):
    """An event of a type that a later version of the platform has added."""

    type: str
    payload: Mapping[str, Any]


PREFIX = "EVENT_TYPE_"
KINDS: Mapping[str, type[Event]] = {
    "BROKER_ORDER": OrderUpdate,
    "BROKER_POSITION": PositionUpdate,
    "BROKER_TRADE": Fill,
    "INTENT_ACTION": ActionAppended,
    "CONTROL": ControlChanged,
    "ACCOUNT": AccountChanged,
    "REFUSAL": Refusal,
}


def subscriptions(kinds: Iterable[type[Event]] | None) -> tuple[str, ...]:
    """The platform's names of these types of events; of all without any."""
    wanted = set(KINDS.values()) if kinds is None else set(kinds)
    found = tuple(f"{PREFIX}{name}" for name, kind in KINDS.items() if kind in wanted)
    if not wanted or len(found) < len(wanted):
        raise ConfigurationError("A type of events is one that the platform sends, such as tip_client.Fill.")
    return found


def event_of(message: Mapping[str, Any]) -> Event | None:
    """The event that a message of the stream holds; None of a heartbeat or of the end of a replay."""
    type_name = str(message.get("type", "")).removeprefix(PREFIX)
    if not message.get("event_id"):
        return None
    payload = message.get(type_name.lower(), {})
    kind = KINDS.get(type_name, UnknownEvent)
    own = {"type": type_name, "payload": payload} if kind is UnknownEvent else payload
    return parse(kind, {**own, **{name: message.get(name) for name in _ENVELOPE}, "position": message})


_ENVELOPE = ("event_id", "trading_account_id", "occurred_at", "traceparent", "previous_hash", "hash")
