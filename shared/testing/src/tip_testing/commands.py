"""Bodies of `POST /v1/accounts/{account_id}/intents`, as the specification has them."""

from typing import Any
from uuid import UUID

Body = dict[str, Any]


def create(symbol: str = "AAPL", quantity: str = "10", side: str = "BUY", **spec: Any) -> Body:
    """A market order unless `spec` says otherwise: `create(Limit={"quantity": "10", "limit_price": "99.50"})`."""
    payload = {"symbol": symbol, "order_side": side, "spec": spec or {"Market": {"quantity": quantity}}}
    return {"command": {"type": "CREATE", "payload": payload}}


def limit(symbol: str = "AAPL", quantity: str = "10", price: str = "99.50", **more: Any) -> Body:
    return create(symbol, Limit={"quantity": quantity, "limit_price": price, **more})


def replace(intent_id: str | UUID, **spec: Any) -> Body:
    chosen = spec or {"Limit": {"quantity": "20", "limit_price": "98"}}
    return {"command": {"type": "REPLACE", "payload": {"ref_intent_id": str(intent_id), "spec": chosen}}}


def cancel(intent_id: str | UUID) -> Body:
    return {"command": {"type": "CANCEL", "payload": {"ref_intent_id": str(intent_id)}}}


def batch(*bodies: Body) -> Body:
    """The body of `…/intents/batch` with the commands of these."""
    return {"commands": [body["command"] for body in bodies]}
