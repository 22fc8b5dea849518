"""Exchanges' words for orders that may still be filled. To ccxt some of them are words for orders that have ended."""

from collections.abc import Callable
from typing import Any

ALIVE = frozenset(
    ("NEW", "OPEN", "ACTIVE", "LIVE", "ACCEPTED", "WORKING", "PENDING", "PENDING_NEW", "PARTIAL_FILL", "PARTIAL_FILLED",
     "PARTIALLY_FILLED", "PENDING_CANCEL", "PENDINGCANCEL", "CANCEL_SENT", "CANCEL_ALL_SENT", "CANCELING", "CANCELLING")
)  # fmt: skip


def with_words_for_living(parse: Callable[..., Any]) -> Callable[..., Any]:
    """ccxt's reading of an exchange's word, which ends nothing that lives."""

    def parsed(word: Any, *more: Any) -> Any:
        lives = isinstance(word, str) and word.upper().replace("-", "_") in ALIVE
        return "open" if lives else parse(word, *more)

    return parsed
