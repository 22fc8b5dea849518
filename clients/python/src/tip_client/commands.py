"""The commands of the API, and an order out of its actions."""

from collections.abc import Mapping, Sequence
from typing import Any

from tip_client.errors import UnexpectedAnswer
from tip_client.models.trading import Action, OrderRecord
from tip_client.orders import NewOrder, OrderSpec


def create_command(order: NewOrder) -> dict[str, Any]:
    return {"type": "CREATE", "payload": order.to_json()}


def replace_command(intent_id: str, spec: OrderSpec) -> dict[str, Any]:
    return {"type": "REPLACE", "payload": {"ref_intent_id": intent_id, "spec": spec.to_json()}}


def cancel_command(intent_id: str) -> dict[str, Any]:
    return {"type": "CANCEL", "payload": {"ref_intent_id": intent_id}}


def record_of(actions: Sequence[Action]) -> OrderRecord:
    """The order whose actions these are, the first one being its CREATE."""
    specs = [action.spec for action in actions if action.spec is not None]
    if not specs:
        raise UnexpectedAnswer("The intent has no order.")
    first, last = actions[0], actions[-1]
    payload: Mapping[str, Any] = first.command.payload
    return OrderRecord(
        first.intent_id,
        payload.get("client_id"),
        tuple(payload.get("tags", ())),
        first.symbol,
        first.order_side,
        first.route_strategy,
        specs[-1],
        last.state,
        first.created_at,
        last,
        extended_hours=payload.get("extended_hours", False),
    )
