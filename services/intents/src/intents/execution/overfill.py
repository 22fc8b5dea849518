"""The total of an intent holds also while it is being replaced.

A broker that takes only the quantity of the new order does not know the total: what is filled of the old order between
our query and the replacement is ordered once more. As soon as that is seen, the system replaces the order by one for
what is really left, or cancels it if it may not be replaced any more.
"""

from uuid import UUID

from chassis import logs
from intents import model, store
from intents.execution.store import overordered
from intents.usecases import Deps
from intents.usecases.submit import announce

log = logs.get(__name__)

ACTOR = model.Actor("system", "overfill-guard")
REASON = "OVERORDERED"
BATCH = 100
MOST_REPLACEMENTS = 5  # of one intent; then the rest is canceled


def reduce_overordered(deps: Deps) -> int:
    """How many orders were found to ask for more than their intent."""
    with deps.engine.connect() as tx:
        found = overordered(tx, BATCH)
    return sum(_reduce(deps, over.account_id, over.intent_id, over.replacements) for over in found)


def _reduce(deps: Deps, account_id: UUID, intent_id: UUID, replacements: int) -> bool:
    query = store.FactsQuery(account_id, ref_intent_id=intent_id)
    facts = store.load_facts(deps.connections.autocommit(), query).facts
    if facts.account is None or facts.intent is None:
        return False
    try:
        admission = _admitted(facts, facts.account, facts.intent, replacements)
        with deps.connections.begin() as tx:
            action = store.append_amendment(tx, store.PendingAction(admission, None, None))
    except (store.FactsChanged, model.IntentTerminal, model.IntentBusy, store.CommitOutcomeUnknown):
        return False  # something else happened to it just now; if it still asks for too much, the next run finds it
    log.warning("overordered_reduced", account_id=str(account_id), intent_id=str(intent_id), type=str(action.type))
    announce(deps, action)
    return True


def _admitted(
    facts: model.SubmitFacts, account: model.Account, intent: model.Intent, replacements: int
) -> model.Admission:
    if replacements < MOST_REPLACEMENTS:
        return model.hold_to_total(facts, intent, account, ACTOR, REASON)
    return model.admit(facts, account, ACTOR, model.Cancel({"ref_intent_id": str(intent.id)}, intent.id), REASON)
