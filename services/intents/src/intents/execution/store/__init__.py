"""The only SQL of execution. Every moment is the database's; many intents are taken and settled by one statement each.

Locks are taken in one order everywhere: intents by account and id, then heads by account.
"""

from intents.execution.store.account_reads import (
    begin_reads,
    due_reads,
    enroll_accounts,
    lock_paces,
    postpone_read,
    read_failures,
    release_account,
    save_pace,
)
from intents.execution.store.backlog import anything_waits, waiting_accounts
from intents.execution.store.claiming import claim, locked_at_claim, refresh
from intents.execution.store.credentials import hold_account
from intents.execution.store.external_orders import record_external_orders
from intents.execution.store.holdings import SavedHoldings, save_holdings
from intents.execution.store.leases import holders, release
from intents.execution.store.locking import lock_intents
from intents.execution.store.quotes import save_quotes, stale_symbols
from intents.execution.store.reconciliation import (
    begin_reading,
    last_logged_before,
    lease_accounts,
    mark_caught_up,
    now,
    orders_of_deleted_accounts,
    release_accounts,
    restored_epoch,
)
from intents.execution.store.sessions import keep_plans
from intents.execution.store.shares import Shares
from intents.execution.store.system_actions import overordered, stale_orders
from intents.execution.store.unresolved import broker_of_account, intent_of_order, unresolved_commands
from intents.execution.store.writing import write, write_last

__all__ = [
    "SavedHoldings",
    "Shares",
    "anything_waits",
    "begin_reading",
    "begin_reads",
    "broker_of_account",
    "claim",
    "due_reads",
    "enroll_accounts",
    "hold_account",
    "holders",
    "intent_of_order",
    "keep_plans",
    "last_logged_before",
    "lease_accounts",
    "lock_intents",
    "lock_paces",
    "locked_at_claim",
    "mark_caught_up",
    "now",
    "orders_of_deleted_accounts",
    "overordered",
    "postpone_read",
    "read_failures",
    "record_external_orders",
    "refresh",
    "release",
    "release_account",
    "release_accounts",
    "restored_epoch",
    "save_holdings",
    "save_pace",
    "save_quotes",
    "stale_orders",
    "stale_symbols",
    "unresolved_commands",
    "waiting_accounts",
    "write",
    "write_last",
]
