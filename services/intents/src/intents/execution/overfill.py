"""The total of an intent holds also while it is being replaced.

A broker that takes only the quantity of the new order cannot be told the total: what is filled of the old order between
our look and the replacement is ordered once more. As soon as that is seen, the system replaces the order by one for
what is really left, or cancels it if it may not be replaced any more.
"""

from uuid import UUID

from sqlalchemy import text

from chassis import logs
from intents import model
from intents.usecases import Deps, submit_own

log = logs.get(__name__)

ACTOR = model.Actor("system", "overfill-guard")
REASON = "OVERORDERED"
BATCH = 100

_OVERORDERED = text("""
    SELECT i.account_id, i.id, (
        SELECT count(*) FROM intents.action a
        WHERE a.account_id = i.account_id AND a.intent_id = i.id AND a.type = 'REPLACE' AND a.actor_type = 'system')
        AS replacements
    FROM intents.intent i
    JOIN accounts_api.account ON account.id = i.account_id
    WHERE i.overordered AND i.status IN ('ACCEPTED', 'PARTIALLY_FILLED')
      AND NOT EXISTS (
          SELECT FROM intents.action a WHERE a.account_id = i.account_id AND a.intent_id = i.id
             AND a.type = 'CANCEL' AND a.actor_type = 'system' AND a.created_at > now() - interval '1 minute')
    LIMIT :batch
""")


def reduce_overordered(deps: Deps) -> int:
    """How many orders were found to ask for more than their intent."""
    with deps.engine.connect() as tx:
        found = tx.execute(_OVERORDERED, {"batch": BATCH}).all()
    return sum(_reduce(deps, row.account_id, row.id, row.replacements) for row in found)


def _reduce(deps: Deps, account_id: UUID, intent_id: UUID, replacements: int) -> bool:
    command = model.HoldToTotal(intent_id, replacements)
    action = submit_own(deps, model.Submission(account_id, command, ACTOR, caller=None, reason=REASON))
    if action is None:
        return False  # if it still asks for too much, the next run finds it
    log.warning("overordered_reduced", account_id=str(account_id), intent_id=str(intent_id), type=str(action.type))
    return True
