"""Periodic maintenance: rolls up the statistics, expires what is kept for a while, notices a restore."""

from threading import Event

from intents import store
from intents.usecases.deps import Deps

REFUSALS_KEPT_DAYS = 30
BULK_OPERATIONS_KEPT_DAYS = 7


def run_maintenance(
    deps: Deps, refusals_kept_days: int = REFUSALS_KEPT_DAYS, stop: Event | None = None, *, roll_up_from: int = 1
) -> int:
    """Add what is new in every log to the statistics, one account a transaction; how many sequences that was.

    Of a log with less than `roll_up_from` new entries nothing is added yet: whoever reads the statistics counts those.
    """
    with deps.engine.begin() as tx:
        store.current_epoch(tx)  # for those who only read the view of it
        store.forget_old_keys(tx)
        store.prune_refusals(tx, refusals_kept_days)
        store.prune_bulk_operations(tx, BULK_OPERATIONS_KEPT_DAYS)
        store.prune_quotes(tx)
        accounts = store.accounts_to_roll_up(tx, roll_up_from)
    rolled_up = 0
    for account_id in accounts:
        if stop and stop.is_set():
            break
        with deps.engine.begin() as tx:
            rolled_up += store.roll_up(tx, account_id)
    return rolled_up
