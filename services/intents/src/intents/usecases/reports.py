"""Recording what a broker reports: the ground on which the executor stands."""

from uuid import UUID

from intents import model, store
from intents.model.reports import Report, apply
from intents.usecases.deps import Deps


def record(deps: Deps, account_id: UUID, intent_id: UUID, report: Report) -> int | None:
    """Change the intent and append the event; its sequence, or None for a report that is known or means nothing."""
    with deps.engine.begin() as tx:
        intent = store.locked_intent(tx, account_id, intent_id)
        if intent is None:
            raise model.IntentNotFound
        if report.execution_id and store.is_known(tx, account_id, report.execution_id):
            return None
        after = apply(intent, report)
        return None if after is None else store.save(tx, account_id, intent, after, report)
