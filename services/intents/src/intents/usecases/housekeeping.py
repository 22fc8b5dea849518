"""What nobody waits for: counting the log, forgetting old idempotency keys and refusals, noticing a restore."""

from intents import store
from intents.usecases.deps import Deps

REFUSALS_KEPT_DAYS = 30


def keep_house(deps: Deps, refusals_kept_days: int = REFUSALS_KEPT_DAYS) -> int:
    """Add what is new in every log to the statistics, one account a transaction; how many sequences that was."""
    with deps.engine.begin() as tx:
        store.current_epoch(tx)  # for those who only read the view of it
        store.forget_old_keys(tx)
        store.prune_refusals(tx, refusals_kept_days)
        accounts = store.behind(tx)
    rolled = 0
    for account_id in accounts:
        with deps.engine.begin() as tx:
            rolled += store.roll(tx, account_id)
    return rolled
