"""The total of an intent holds also while it is being replaced.

A broker that takes only the quantity of the new order does not know the total: what is filled of the old order between
our query and the replacement is ordered once more. As soon as that is seen, the system replaces the order by one for
what is really left, or cancels it if it may not be replaced any more.
"""

from threading import Event
from uuid import UUID

from chassis import db, logs
from intents import model
from intents.execution.store import overordered
from intents.usecases import Deps, submit_own

log = logs.get(__name__)

ACTOR = model.Actor("system", "overfill-guard")
REASON = "OVERORDERED"
BATCH = 100


def reduce_overordered(deps: Deps, stop: Event | None = None) -> int:
    """How many orders were replaced or canceled because they ask for more than their intent."""
    with db.reading(deps.engine) as tx:
        found = overordered(tx, BATCH)
    reduced = 0
    for over in found:
        if stop and stop.is_set():  # each may wait for a lock: a loop that polls in between is not reported as hung
            break
        reduced += _reduce(deps, over.account_id, over.intent_id, over.replacements)
    return reduced


def _reduce(deps: Deps, account_id: UUID, intent_id: UUID, replacements: int) -> bool:
    command = model.HoldToTotal(intent_id, replacements)
    action = submit_own(deps, model.Submission(account_id, command, ACTOR, caller=None, reason=REASON))
    if action is None:
        return False  # if it still asks for too much, the next run finds it
    log.warning("overordered_reduced", account_id=str(account_id), intent_id=str(intent_id), type=str(action.type))
    return True
