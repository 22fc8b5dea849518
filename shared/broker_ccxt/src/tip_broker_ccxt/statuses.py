"""Where ccxt is wrong about how an order stands: some that live have ended to it, some that have ended are open.

What it does not know it repeats, and `expired` of HitBTC is `failed` to it: an order with such a word would never end.
"""

from collections.abc import Callable
from typing import Any

ALIVE = frozenset(
    ("NEW", "OPEN", "ACTIVE", "LIVE", "ACCEPTED", "WORKING", "PENDING", "PENDING_NEW", "PARTIAL_FILL", "PARTIAL_FILLED",
     "PARTIALLY_FILLED")
)  # fmt: skip
CANCELING = "canceling"
BEING_CANCELED = frozenset(
    ("PENDING_CANCEL", "PENDINGCANCEL", "CANCEL_SENT", "CANCEL_ALL_SENT", "CANCELING", "CANCELLING", "CANCEL_QUEUED",
     "CANCEL_REQUESTED")
)  # fmt: skip
CANCELED_IN_PART = frozenset(
    ("PARTIALLYFILLEDCANCELED", "PARTIALLY_FILLED_CANCELED", "PARTIALLY_CANCELED", "PARTIALLY_CANCELLED",
     "PARTIAL_CANCELED", "PARTIAL_CANCELLED")
)  # fmt: skip
CANCELED = ("CANCELED", "CANCELLED")
"""Also with what was the cause: WhiteBit has CANCELED_STP."""
ENDS = {"EXPIRED": "expired", "REJECTED": "rejected", "FAILED": "canceled"}


def with_known_words(parse: Callable[..., Any]) -> Callable[..., Any]:
    """ccxt's reading of an exchange's word for how an order stands, corrected."""

    def parsed(word: Any, *more: Any) -> Any:
        known = word.upper().replace("-", "_") if isinstance(word, str) else ""
        if known in ALIVE or known in BEING_CANCELED:
            return "open" if known in ALIVE else CANCELING
        if known in CANCELED_IN_PART or known.startswith(CANCELED):
            return "canceled"
        return ENDS.get(known) or parse(word, *more)

    return parsed


def with_own_figures(complete: Callable[..., Any]) -> Callable[..., Any]:
    """ccxt's completion of an order, without what it makes up: a quantity of what is filled, and the reverse."""

    def completed(order: Any, *more: Any) -> Any:
        return {**complete(order, *more), "amount": order.get("amount"), "filled": order.get("filled")}

    return completed
