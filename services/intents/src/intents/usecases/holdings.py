"""Reading what an account holds.

From our own tables: the reconciler queries the brokers, so no reader ever waits for one.
"""

from collections.abc import Callable

from intents.model.holdings import Balance, Position
from intents.store import holdings as store
from intents.usecases.deps import Deps
from intents.usecases.reads import Reader, visible


def positions(deps: Deps, reader: Reader, charge_rows: Callable[[int], None]) -> list[Position]:
    """The open positions, charged by their number before they are read."""
    with deps.engine.connect() as tx:
        account = visible(tx, reader)
        charge_rows(store.position_count(tx, account.id))
        return store.positions(tx, account.id)


def balance(deps: Deps, reader: Reader) -> Balance:
    with deps.engine.connect() as tx:
        return store.balance(tx, visible(tx, reader).id)
