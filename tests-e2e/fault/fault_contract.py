"""What the contract says, written down once for the harness: the code that is checked is not imported."""

TERMINAL = frozenset({"FILLED", "CANCELED", "REJECTED", "DENIED", "EXPIRED", "FAILED"})
OPEN_AT_BROKER = frozenset({"accepted", "new", "partially_filled", "pending_cancel", "pending_replace"})


def client_order_id(action_id: str) -> str:
    """The function of the action's id that the contract speaks of."""
    return "tip-" + action_id.replace("-", "")
