"""Actions and the intents they are about."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.lifecycle import Status
from intents.model.orders import Spec


class Actor(NamedTuple):
    """Who acted: api_key, user, service_account or system."""

    type: str
    id: str


class State(NamedTuple):
    """Where an intent stands."""

    status: str
    filled_quantity: Decimal
    leaves_quantity: Decimal
    average_fill_price: Decimal | None
    broker_order_id: str | None
    reason_code: str | None
    outcome: str | None
    updated_at: datetime
    group_id: UUID | None = None
    group_role: str | None = None

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "State":
        """From what `record` made of it."""
        if kept.get("group_id"):
            kept = {**kept, "group_id": UUID(kept["group_id"])}
        decimals = ("filled_quantity", "leaves_quantity", "average_fill_price")
        numbers = {name: None if kept[name] is None else Decimal(kept[name]) for name in decimals}
        return cls(**{**kept, **numbers, "updated_at": datetime.fromisoformat(kept["updated_at"])})


@dataclass(frozen=True, slots=True)
class Intent:
    """An intent as it stands, with what deciding about it needs. `version` changes with every change of the rest."""

    id: UUID
    symbol: str
    order_side: str
    route_strategy: str
    spec: Spec
    quantity: Decimal
    status: Status
    filled_quantity: Decimal
    average_fill_price: Decimal | None
    broker_order_id: str | None
    reason_code: str | None
    outcome: str | None
    version: int
    created_at: datetime
    updated_at: datetime
    extended_hours: bool = False
    group_id: UUID | None = None
    group_role: str | None = None
    armed_at: datetime | None = None
    """When a child of an order group was let go: its parent is filled."""
    uncounted: bool = False
    """Whether limits do not count it as open: another leg of its group is counted for it."""


class Change(NamedTuple):
    """What an action does to the status of its intent; `version` is what the intent must still have, None if new."""

    before: Status | None
    after: Status
    version: int | None
    intent_created_at: datetime


@dataclass(frozen=True, slots=True)
class Action:
    """One line of the log. `sequence` and the hashes are 0 and empty until the log has given them."""

    id: UUID
    intent_id: UUID
    account_id: UUID
    organization_id: UUID
    environment: str
    type: str
    payload: Mapping[str, Any]
    symbol: str
    order_side: str
    spec: Mapping[str, Any] | None
    route_strategy: str
    ref_intent_id: UUID | None
    actor: Actor
    reason: str | None
    controls: Mapping[str, Any]
    created_at: datetime
    state: State
    sequence: int = 0
    previous_hash: bytes = b""
    hash: bytes = b""


def leaves(quantity: Decimal, filled: Decimal, status: Status | str, terminal: frozenset[Status]) -> Decimal:
    """What may still be filled: nothing once the intent has ended."""
    return Decimal(0) if status in terminal else max(Decimal(0), quantity - filled)


def record(action: Action) -> dict[str, Any]:
    """The action as the API shows it, and as the chain of hashes seals it."""
    return {
        "id": str(action.id),
        "sequence": action.sequence,
        "intent_id": str(action.intent_id),
        "account_id": str(action.account_id),
        "organization_id": str(action.organization_id),
        "environment": action.environment,
        "command": {"type": str(action.type), "payload": action.payload},
        "symbol": action.symbol,
        "order_side": action.order_side,
        "spec": action.spec,
        "route_strategy": action.route_strategy,
        "ref_intent_id": _text(action.ref_intent_id),
        "actor": {"type": action.actor.type, "id": action.actor.id},
        "reason": action.reason,
        "controls": action.controls,
        "created_at": moment(action.created_at),
        "state": {
            "status": str(action.state.status),
            "filled_quantity": _number(action.state.filled_quantity),
            "leaves_quantity": _number(action.state.leaves_quantity),
            "average_fill_price": _number(action.state.average_fill_price),
            "broker_order_id": action.state.broker_order_id,
            "reason_code": action.state.reason_code,
            "outcome": action.state.outcome,
            "updated_at": moment(action.state.updated_at),
            "group_id": _text(action.state.group_id),
            "group_role": action.state.group_role,
        },
        "previous_hash": action.previous_hash.hex(),
        "hash": action.hash.hex(),
    }


def _text(value: UUID | None) -> str | None:
    return None if value is None else str(value)


def _number(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")


def moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"
