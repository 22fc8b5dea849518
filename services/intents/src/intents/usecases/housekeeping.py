"""What nobody waits for: counting the log, forgetting old idempotency keys, noticing a restore."""

from intents import store
from intents.usecases.deps import Deps


def keep_house(deps: Deps) -> int:
    """Add what is new in every log to the statistics, one account a transaction; how many sequences that was."""
    with deps.engine.begin() as tx:
        store.current_epoch(tx)  # for those who only read the view of it
        store.forget_old_keys(tx)
        accounts = store.behind(tx)
    rolled = 0
    for account_id in accounts:
        with deps.engine.begin() as tx:
            rolled += store.roll(tx, account_id)
    return rolled
