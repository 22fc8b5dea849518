"""Orders that have been open for too long get a CANCEL from the system itself."""

from uuid import UUID

from sqlalchemy import exc

from chassis import db, logs
from intents import model, store
from intents.execution.store import stale_orders
from intents.usecases import Deps
from intents.usecases.submit import announce

log = logs.get(__name__)

ACTOR = model.Actor("system", "stale-orders")
REASON = "STALE_ORDER"
BATCH = 100


def cancel_stale(deps: Deps) -> int:
    """How many orders were found too old."""
    with deps.engine.connect() as tx:
        found = stale_orders(tx, BATCH)
    return sum(_cancel(deps, stale.account_id, stale.intent_id) for stale in found)


def _cancel(deps: Deps, account_id: UUID, intent_id: UUID) -> bool:
    try:
        with deps.connections.begin() as tx:
            store.lock_intents(tx, account_id, [intent_id])  # it may be filling: nobody comes in between
            action = _append(tx, account_id, intent_id)
    except (
        model.AccountNotFound,
        model.IntentTerminal,
        model.IntentBusy,
        store.CommitOutcomeUnknown,
        store.FactsChanged,
    ):
        return False  # something else happened to it just now; if it is still too old, the next run finds it
    except exc.OperationalError as error:
        if not db.is_lock_timeout(error):
            raise
        return False  # the others need not wait for this one
    log.info("stale_order_canceled", account_id=str(account_id), intent_id=str(intent_id))
    announce(deps, action)
    return True


def _append(tx: store.OpenTransaction, account_id: UUID, intent_id: UUID) -> model.Action:
    facts = store.load_facts(tx, store.FactsQuery(account_id, ref_intent_id=intent_id)).facts
    if facts.account is None:
        raise model.AccountNotFound
    command = model.Cancel({"ref_intent_id": str(intent_id)}, intent_id)
    admission = model.admit(facts, facts.account, ACTOR, command, REASON)
    return store.append_amendment(tx, store.PendingAction(admission, None, None))
