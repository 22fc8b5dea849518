"""Order groups that need looking after: exits that are still open although nothing is left for them, and what was
filled beyond what a group was for, where its account has that flattened.

What is done in time is done by the transaction that records a fill (`group_effects`); this is for the rest.
"""

from threading import Event

from chassis import db, logs
from intents import model
from intents.execution.group_effects import ACTOR, cancel
from intents.execution.store import groups as store
from intents.execution.store.groups import Unflattened
from intents.model import Append, Refused
from intents.model.groups import FLATTEN, Membership
from intents.store import FactsChanged, OpenTransaction, lock_account
from intents.usecases import Deps, group_writing, submit_own, writing
from intents.usecases.outcomes import Result

log = logs.get(__name__)

BATCH = 100


def tend_order_groups(deps: Deps, stop: Event | None = None) -> int:
    """How many legs were canceled, and groups flattened."""
    with db.reading(deps.engine) as tx:
        open_exits, unflattened = store.left_over(tx, BATCH), store.unflattened(tx, BATCH)
    done = 0
    for left in open_exits:
        if not (stop and stop.is_set()):
            done += submit_own(deps, cancel(left.account_id, left.intent_id)) is not None
    for found in unflattened:
        if not (stop and stop.is_set()):
            done += _flatten(deps, found)
    with deps.engine.begin() as tx:
        store.forget_canceled(tx)
    return done


def _flatten(deps: Deps, found: Unflattened) -> bool:
    """Once for all of it: the order and the note that it was made are one transaction."""
    with deps.connections.begin() as tx:
        lock_account(tx, found.account_id, found.organization_id)
        quantity = store.lock_excess(tx, found)
        if quantity <= 0:
            return False
        action = _order(tx, deps, found, f"{quantity:f}")
        if action is None:
            return False
        store.save_flattened(tx, found, quantity)
    writing.after_commit(deps, [Result(action)])
    log.warning(
        "order_group_flattened",
        account_id=str(found.account_id),
        group_id=str(found.group_id),
        intent_id=str(action.intent_id),
        quantity=f"{quantity:f}",
    )
    return True


def _order(tx: OpenTransaction, deps: Deps, found: Unflattened, quantity: str) -> model.Action | None:
    """None if it is refused: it is tried again, and the group shows how much is left."""
    spec, side = model.Spec("Market", {"quantity": quantity}), "SELL" if found.order_side == "BUY" else "BUY"
    payload = {"symbol": found.symbol, "order_side": side, "spec": {"Market": {"quantity": quantity}}}
    command = model.Create(payload, found.symbol, side, found.route_strategy, spec)
    submission = model.Submission(found.account_id, command, ACTOR, caller=None)
    _, decision = writing.decide(tx, submission, count_orders=True, price_max_age=deps.price_max_age)
    if not isinstance(decision, Append):
        error = type(decision.error if isinstance(decision, Refused) else FactsChanged()).__name__
        log.warning("order_group_not_flattened", group_id=str(found.group_id), error=error)
        return None
    member = Membership(found.group_id, FLATTEN)
    [action] = writing.append(tx, [group_writing.as_leg(decision.pending, member)])
    return action
