"""Actions, orders and what else is read of trading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from tip_client.errors import Reason
from tip_client.orders import OrderSpec
from tip_client.records import KEY
from tip_client.words import BulkStatus, CommandType, Decision, Environment, RouteStrategy, Side, Status


@dataclass(frozen=True)
class Actor:
    """Who did something: type is api_key, user, service_account or system."""

    type: str
    id: str


@dataclass(frozen=True)
class Command:
    """A command as it was submitted."""

    type: CommandType
    payload: Mapping[str, Any]


@dataclass(frozen=True)
class ControlCheck:
    """A control that was looked at when a command was decided."""

    control: str
    version: int | None
    outcome: str


@dataclass(frozen=True)
class ActionControls:
    """What the controls said of an action, and by which facts."""

    decision: Decision
    checks: tuple[ControlCheck, ...]
    facts: Mapping[str, Any] | None


@dataclass(frozen=True)
class OrderState:
    """How far an order has come."""

    status: Status
    filled_quantity: Decimal
    leaves_quantity: Decimal
    average_fill_price: Decimal | None
    broker_order_id: str | None
    reason_code: str | None
    outcome: str | None
    """`unknown` while the broker's answer is not known."""
    updated_at: datetime
    group_id: str | None
    """The order group of which it is a leg; `client.orders(group_id=…)` lists the legs."""
    group_role: str | None


@dataclass(frozen=True)
class Action:
    """An entry of the account's action log; it never changes, apart from `state`, which is the order's of now."""

    id: str
    sequence: int
    intent_id: str
    account_id: str
    organization_id: str
    environment: Environment
    command: Command
    symbol: str
    order_side: Side
    spec: OrderSpec | None
    route_strategy: RouteStrategy
    ref_intent_id: str | None
    actor: Actor
    reason: str | None
    controls: ActionControls
    created_at: datetime
    state: OrderState
    previous_hash: str
    hash: str


@dataclass(frozen=True)
class OrderRecord:
    """An order as a list shows it."""

    intent_id: str
    client_id: str | None
    tags: tuple[str, ...]
    symbol: str
    order_side: Side
    route_strategy: RouteStrategy
    spec: OrderSpec
    state: OrderState
    created_at: datetime
    last_action: Action
    extended_hours: bool = field(kw_only=True)
    """Whether it may trade outside the regular hours."""


@dataclass(frozen=True)
class BatchResult:
    """What became of one command of a batch: an action, a problem, or neither when another one was refused."""

    status: int
    action: Action | None
    problem: Mapping[str, Any] | None


@dataclass(frozen=True)
class BatchResults:
    results: tuple[BatchResult, ...]


@dataclass(frozen=True)
class RefusedCommand:
    """A command that controls refused; it made no action."""

    id: str
    type: CommandType
    symbol: str
    order_side: Side | None
    spec: OrderSpec | None
    ref_intent_id: str | None
    actor: Actor
    reasons: tuple[Reason, ...]
    request_id: str | None
    created_at: datetime


@dataclass(frozen=True)
class ClosingRefusal:
    """A position whose closing order was refused."""

    symbol: str
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class AwaitedOrder:
    """An order that a bulk operation waits for, and why it has not ended."""

    intent_id: str
    status: Status
    reason_code: str | None
    outcome: str | None


@dataclass(frozen=True)
class BulkRecord:
    """A bulk operation as it is read."""

    id: str
    account_id: str
    organization_id: str
    type: str
    symbol: str | None
    order_side: Side | None
    reason: str
    actor: Actor
    status: BulkStatus
    total: int
    done: int
    refusals: tuple[ClosingRefusal, ...]
    waiting_for: tuple[AwaitedOrder, ...]
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


@dataclass(frozen=True)
class BrokenLink:
    """Where the chain of a log is broken."""

    sequence: int
    action_id: str | None
    reason: str


@dataclass(frozen=True)
class Verification:
    """What following a part of the log's chain has found."""

    account_id: str
    valid: bool
    checked: int
    last_sequence: int
    signed_sequence: int | None
    log_epoch: str
    first_broken: BrokenLink | None
    next_cursor: str | None


@dataclass(frozen=True)
class LogKeys:
    """The public keys of signed heads, as JWKs."""

    keys: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class SymbolCount:
    symbol: str
    total_actions: int


@dataclass(frozen=True)
class TagCount:
    tag: str
    total_intents: int


@dataclass(frozen=True)
class Latencies:
    """In milliseconds."""

    submit_p50: float | None
    submit_p95: float | None
    fill_p50: float | None
    fill_p95: float | None


@dataclass(frozen=True)
class Statistics:
    """What was done in a window of time."""

    account_id: str
    time_window: str
    from_: datetime | None = field(metadata={KEY: "from"})
    to: datetime
    total_actions: int
    total_intents: int
    by_type: Mapping[str, int]
    by_status: Mapping[str, int]
    by_symbol: tuple[SymbolCount, ...]
    by_tag: tuple[TagCount, ...]
    fill_rate: float | None
    refusals: Mapping[str, Any]
    latency_ms: Latencies
