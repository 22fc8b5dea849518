"""What an arrangement of order groups leaves to be written: in the transaction that records what brought it about."""

from collections.abc import Iterable
from uuid import UUID

import control_rules
from chassis import logs
from intents import model
from intents.execution.metrics import GROUP_OVERFILLS
from intents.execution.model.groups import Arrangement, Excess
from intents.execution.store.groups import begin_canceling, save_excess
from intents.store.connections import OpenTransaction
from intents.usecases import writing

log = logs.get(__name__)

ACTOR = model.Actor("system", "order-groups")
SIBLING_FILLED = "SIBLING_FILLED"


def cancel(account_id: UUID, intent_id: UUID) -> model.Submission:
    """The platform's own CANCEL of a leg for which the others have left nothing."""
    command = model.Cancel({"ref_intent_id": str(intent_id)}, intent_id)
    return model.Submission(account_id, command, ACTOR, caller=None, reason=SIBLING_FILLED)


def write_effects(tx: OpenTransaction, arrangement: Arrangement) -> dict[UUID, int]:
    """The new head of the log of each account that got a CANCEL."""
    heads: dict[UUID, int] = {}
    for excess in arrangement.excesses:
        save_excess(tx, excess)
    for leg in arrangement.cancels:
        if leg.locked.group:
            begin_canceling(tx, leg.locked.account_id, leg.locked.group.id)
        submission = cancel(leg.locked.account_id, leg.intent.id)
        try:
            result = writing.decide_and_write(
                tx, submission, count_orders=False, price_max_age=control_rules.PRICE_MAX_AGE
            )
        except model.Refusal as refusal:  # the account is gone: nothing can be canceled there
            log.warning("sibling_not_canceled", intent_id=str(leg.intent.id), error=type(refusal).__name__)
            continue
        heads[result.action.account_id] = result.action.sequence
    return heads


def report_excesses(excesses: Iterable[Excess]) -> None:
    """After the commit."""
    for excess in excesses:
        GROUP_OVERFILLS.inc()
        log.error(
            "order_group_overfilled",
            account_id=str(excess.account_id),
            group_id=str(excess.group_id),
            intent_id=str(excess.intent_id),
            quantity=f"{excess.quantity:f}",
        )
