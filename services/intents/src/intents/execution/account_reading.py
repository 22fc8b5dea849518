"""One reading of an account at its broker: its orders and positions, read until they agree."""

from collections.abc import Mapping
from decimal import Decimal

from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import Holdings, ReadingStart
from intents.execution.reconciliation import NONE_SHOWN, AccountReconciliation

READ_TIMES = 3  # at the most, while orders are filled; then the next reading is waited for


def read_account(account: AccountReconciliation, start: ReadingStart) -> tuple[list[BrokerReport], Holdings | None]:
    """The differences to record, and what the account holds, unless the broker does not say it.

    Positions are read between two readings of the orders, until these agree about all that is read: only then is it
    known which fills the positions contain. The first of these is what is recorded.
    """
    orders = NONE_SHOWN
    for _ in range(READ_TIMES):
        before, positions = account.filled(orders), account.attempt(account.broker.positions)
        if orders is NONE_SHOWN and account.is_left_alone:
            raise account.failures[0]
        orders = account.orders(orders)
        after = account.filled(orders)
        if positions is None or after.items() <= before.items():
            break
    filled = _contained(account, before, after)
    balance = None if positions is None else account.attempt(account.broker.balance)
    differences = account.differences_from(orders)
    if positions is None or balance is None:
        return differences, None
    in_other_account = {known.key for known in start.orders} - {known.key for known in account.known}
    return differences, Holdings(positions, balance, start.began_at, start.sequence, filled, in_other_account)


def _contained(
    account: AccountReconciliation, before: Mapping[str, Decimal], after: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    """Without orders that were filled in between, or are shown as they were before what is recorded."""
    recorded = account.filled(NONE_SHOWN)
    return {key: quantity for key, quantity in after.items() if before.get(key) == quantity >= recorded[key]}
