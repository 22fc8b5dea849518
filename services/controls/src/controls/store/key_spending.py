"""What an API key has spent of its budget, by the function that submits use too."""

from uuid import UUID

from sqlalchemy import Connection, text

from control_rules import KeySpending

_KEY_BUDGET = text("SELECT day_ends_at, spent, charged FROM intents_api.key_budget(:key_id, :account_id, :intent_id)")


def key_spending(tx: Connection, key_id: str, account_id: UUID, intent_id: UUID | None) -> KeySpending | None:
    """None if nothing was ever counted. `charged` is what the intent has taken of it in the same day."""
    values = {"key_id": UUID(key_id), "account_id": account_id, "intent_id": intent_id}
    row = tx.execute(_KEY_BUDGET, values).one_or_none()
    return KeySpending(*row) if row else None
