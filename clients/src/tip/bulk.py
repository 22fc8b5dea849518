"""The end of a command that is a bulk operation: what it has done so far, or has done in the end."""

from typing import TYPE_CHECKING

from tip.exits import REFUSED
from tip.order_text import bulk_line
from tip.plain import short
from tip.sending import accepted
from tip.session import Session

if TYPE_CHECKING:
    from tip_client import BulkOperation


def finish(session: Session, operation: "BulkOperation", key: str | None, timeout: float | None) -> None:
    """With a timeout, wait for it; positions whose closing was refused are a failure."""
    hint = "do not repeat it: `tip orders --open` shows what is left"
    with accepted(f"operation {short(operation.id)} was accepted", hint, key, bulk_operation_id=operation.id):
        done = operation if timeout is None else operation.wait(timeout=timeout)
        if session.out.as_json:
            session.out.document(done)
        else:
            show(session, done)
    if done.refusals:
        raise SystemExit(REFUSED)


def show(session: Session, operation: "BulkOperation") -> None:
    session.out.line(bulk_line(operation), mark="✗" if operation.refusals else "✓")
    for refusal in operation.refusals:
        why = "; ".join(f"{reason.code}: {reason.message}" for reason in refusal.reasons)
        session.out.line(f"{refusal.symbol} stays open: {why}", mark="✗")
    for order in operation.waiting_for:
        why = f" ({order.reason_code})" if order.reason_code else ""
        session.out.line(f"waits for intent {order.intent_id}: {order.status}{why}", mark="!")
