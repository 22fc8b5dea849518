"""Orders that have been open for too long get a CANCEL from the system itself."""

from uuid import UUID

from sqlalchemy import text

from chassis import logs
from intents import model
from intents.usecases import Deps, submit_own

log = logs.get(__name__)

ACTOR = model.Actor("system", "stale-orders")
REASON = "STALE_ORDER"
BATCH = 100

# Of a deleted account nothing can be canceled: left in, enough of them would fill every batch.
# A cancel that the broker refused is not repeated at once: the order is left alone for a minute.
_STALE = text("""
    SELECT i.account_id, i.id
    FROM controls_api.symbol_time t
    JOIN intents.intent i ON i.account_id = t.account_id AND i.symbol = t.symbol
    JOIN accounts_api.account ON account.id = i.account_id
    WHERE t.stale_order_millis IS NOT NULL AND i.status IN ('ACCEPTED', 'PARTIALLY_FILLED')
      AND i.accepted_at < now() - t.stale_order_millis * interval '1 millisecond'
      AND NOT EXISTS (
          SELECT FROM intents.action a WHERE a.account_id = i.account_id AND a.intent_id = i.id
             AND a.type = 'CANCEL' AND a.actor_type = 'system' AND a.created_at > now() - interval '1 minute')
    LIMIT :batch
""")


def cancel_stale(deps: Deps) -> int:
    """How many orders were found too old."""
    with deps.engine.connect() as tx:
        found = [(row.account_id, row.id) for row in tx.execute(_STALE, {"batch": BATCH})]
    return sum(_cancel(deps, account_id, intent_id) for account_id, intent_id in found)


def _cancel(deps: Deps, account_id: UUID, intent_id: UUID) -> bool:
    command = model.Cancel({"ref_intent_id": str(intent_id)}, intent_id)
    if submit_own(deps, model.Submission(account_id, command, ACTOR, caller=None, reason=REASON)) is None:
        return False  # if it is still too old, the next run finds it
    log.info("stale_order_canceled", account_id=str(account_id), intent_id=str(intent_id))
    return True
