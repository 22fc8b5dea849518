"""Orders that have been open for too long get a CANCEL from the system itself."""

from threading import Event
from uuid import UUID

from chassis import db, logs
from intents import model
from intents.execution.store import stale_orders
from intents.usecases import Deps, submit_own

log = logs.get(__name__)

ACTOR = model.Actor("system", "stale-orders")
REASON = "STALE_ORDER"
BATCH = 100


def cancel_stale(deps: Deps, stop: Event | None = None) -> int:
    """How many orders were canceled because they are too old."""
    with db.reading(deps.engine) as tx:
        found = stale_orders(tx, BATCH)
    canceled = 0
    for stale in found:
        if stop and stop.is_set():  # each may wait for a lock: a loop that polls in between is not reported as hung
            break
        canceled += _cancel(deps, stale.account_id, stale.intent_id)
    return canceled


def _cancel(deps: Deps, account_id: UUID, intent_id: UUID) -> bool:
    command = model.Cancel({"ref_intent_id": str(intent_id)}, intent_id)
    if submit_own(deps, model.Submission(account_id, command, ACTOR, caller=None, reason=REASON)) is None:
        return False  # if it is still too old, the next run finds it
    log.info("stale_order_canceled", account_id=str(account_id), intent_id=str(intent_id))
    return True
