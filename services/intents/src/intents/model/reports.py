"""What a broker, or the executor itself, reports about an intent, and what that makes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from intents.model.actions import Intent, leaves
from intents.model.lifecycle import TERMINAL, Status, Update, follow
from intents.model.orders import Spec


@dataclass(frozen=True)
class Report:
    """`execution_id` names a fill for good: the same one twice is one fill. `spec` is the order after a REPLACED."""

    update: Update
    occurred_at: datetime
    broker_order_id: str | None = None
    execution_id: str | None = None
    last_quantity: Decimal | None = None
    last_price: Decimal | None = None
    reason_code: str | None = None
    reason: str | None = None
    outcome: str | None = None
    spec: Spec | None = None
    reasons: tuple[Mapping[str, Any], ...] = ()
    """What controls said against it; see the answer to a refused submit."""

    @property
    def is_fill(self) -> bool:
        return self.update in (Update.PARTIALLY_FILLED, Update.FILLED)


def apply(intent: Intent, report: Report) -> Intent | None:
    """The intent after the report, or None if the report means nothing to it any more."""
    last = report.last_quantity or Decimal(0)
    filled = intent.filled_quantity + last
    status = follow(intent.status, report.update, filled)
    if status is None:
        return None
    return replace(
        intent,
        status=status,
        filled_quantity=filled,
        average_fill_price=_average(intent, last, report.last_price),
        broker_order_id=report.broker_order_id or intent.broker_order_id,
        reason_code=_reason_code(intent, report, status),
        outcome=report.outcome,
        spec=report.spec or intent.spec,
        quantity=_quantity(intent, report, status, filled),
        updated_at=report.occurred_at,
    )


def _quantity(intent: Intent, report: Report, status: Status, filled: Decimal) -> Decimal:
    """Of an order by its notional it is known once it is filled."""
    if intent.spec.notional is not None and status is Status.FILLED:
        return filled
    return report.spec.quantity if report.spec else intent.quantity


def _reason_code(intent: Intent, report: Report, status: Status) -> str | None:
    """The report's own code. An earlier one is kept only while an intent that has ended stays as it ended."""
    has_stayed_ended = status is intent.status and status in TERMINAL
    return report.reason_code or (intent.reason_code if has_stayed_ended else None)


def _average(intent: Intent, last: Decimal, price: Decimal | None) -> Decimal | None:
    """What was filled without a price counts at the average of the rest."""
    average = intent.average_fill_price
    if not last or price is None:
        return average
    before = intent.filled_quantity * (price if average is None else average)
    return (before + last * price) / (intent.filled_quantity + last)


def broker_order(intent: Intent, report: Report) -> dict[str, Any]:
    """The event as the stream shows it; decimals are strings."""
    terms = intent.spec.terms
    return {
        "intent_id": str(intent.id),
        "broker_order_id": intent.broker_order_id,
        "symbol": intent.symbol,
        "order_side": intent.order_side,
        "order_kind": intent.spec.kind,
        "status": str(intent.status),
        "quantity": terms.get("quantity") or format(intent.quantity, "f"),
        "filled_quantity": format(intent.filled_quantity, "f"),
        "leaves_quantity": format(leaves(intent.quantity, intent.filled_quantity, intent.status, TERMINAL), "f"),
        "average_fill_price": _number(intent.average_fill_price),
        "limit_price": terms.get("limit_price"),
        "stop_price": terms.get("stop_price"),
        **{name: terms[name] for name in ("trail_amount", "trail_percent", "notional") if name in terms},
        "reason_code": intent.reason_code,
        "reason": report.reason,
        "execution_id": report.execution_id,
        "last_quantity": _number(report.last_quantity),
        "last_price": _number(report.last_price),
        "outcome": intent.outcome,
        **({"reasons": list(report.reasons)} if report.reasons else {}),
    }


def broker_trade(intent: Intent, report: Report) -> dict[str, Any]:
    """A fill by itself."""
    return {
        "intent_id": str(intent.id),
        "broker_order_id": intent.broker_order_id,
        "execution_id": report.execution_id,
        "symbol": intent.symbol,
        "order_side": intent.order_side,
        "quantity": _number(report.last_quantity),
        "price": _number(report.last_price),
    }


def _number(value: Decimal | None) -> str | None:
    return None if value is None else format(value, "f")
