"""The only SQL on the tables of intents."""

from intents.store.append import (
    FactsChanged,
    append_amendment,
    append_creates,
    append_creates_in_rounds,
    confirm_written,
    insert_group,
    remember,
)
from intents.store.backlog import save_overloads
from intents.store.broker_reads import READS, request_read
from intents.store.broker_tables import quote as _quote  # noqa: F401 - adds its tables to METADATA
from intents.store.bulk_operations import (
    BULK_OPERATIONS,
    awaited_orders,
    bulk_operation_of_key,
    claim_bulk_operations,
    closing_still_open,
    find_bulk_operation,
    has_unfinished_bulk_operation,
    held_at_broker,
    insert_bulk_operation,
    insert_cancels_of_all,
    intents_to_cancel,
    prune_bulk_operations,
    save_bulk_operation,
    still_open,
    unfinished_bulk_operations,
)
from intents.store.connections import CommitOutcomeUnknown, OpenTransaction, PreparedConnections
from intents.store.daily_loss import new_balances, save_day_equities
from intents.store.epochs import LogEpoch, begin_epoch, current_epoch, epochs
from intents.store.events import append_to_all, feed_position, waiting_cancels
from intents.store.facts import FactsQuery, LoadedFacts, load_facts, load_facts_many
from intents.store.key_budget_tables import key_budget as _key_budget  # noqa: F401 - adds its table to METADATA
from intents.store.key_budgets import with_key_budget
from intents.store.locking import lock_account, lock_accounts, lock_intents, locked_accounts
from intents.store.order_facts import OrderQuery, with_order_facts, with_order_facts_many
from intents.store.order_tables import intent_tag
from intents.store.orders import order_keys, orders
from intents.store.quotes import prune_quotes
from intents.store.reads import (
    account,
    accounts_of,
    by_id,
    entries,
    head,
    history,
    last_cancel,
    latest,
    limit_statements,
    page,
)
from intents.store.refusals import (
    accounts_with_unlogged_refusals,
    logged_by_minute,
    mark_logged,
    prune_refusals,
    refusal_keys,
    refusals,
    refuse,
    unlogged_refusals,
)
from intents.store.signed_heads import (
    HeadToSign,
    StoredSignature,
    closing_head,
    heads_to_sign,
    keep_signed_heads,
    log_signing_keys,
    publish_signing_key,
    save_signed_heads,
    sequence_before,
    stored_signature,
)
from intents.store.statement import Transaction
from intents.store.statistics import accounts_to_roll_up, counts, forget_old_keys, now, roll_up
from intents.store.tables import METADATA, SCHEMA
from intents.store.tables_bulk import bulk_operation
from intents.store.timeline import TIMELINE_BEGINNING, timeline

__all__ = [
    "BULK_OPERATIONS",
    "METADATA",
    "READS",
    "SCHEMA",
    "TIMELINE_BEGINNING",
    "CommitOutcomeUnknown",
    "FactsChanged",
    "FactsQuery",
    "HeadToSign",
    "LoadedFacts",
    "LogEpoch",
    "OpenTransaction",
    "OrderQuery",
    "PreparedConnections",
    "StoredSignature",
    "Transaction",
    "account",
    "accounts_of",
    "accounts_to_roll_up",
    "accounts_with_unlogged_refusals",
    "append_amendment",
    "append_creates",
    "append_creates_in_rounds",
    "append_to_all",
    "awaited_orders",
    "begin_epoch",
    "bulk_operation",
    "bulk_operation_of_key",
    "by_id",
    "claim_bulk_operations",
    "closing_head",
    "closing_still_open",
    "confirm_written",
    "counts",
    "current_epoch",
    "entries",
    "epochs",
    "feed_position",
    "find_bulk_operation",
    "forget_old_keys",
    "has_unfinished_bulk_operation",
    "head",
    "heads_to_sign",
    "held_at_broker",
    "history",
    "insert_bulk_operation",
    "insert_cancels_of_all",
    "insert_group",
    "intent_tag",
    "intents_to_cancel",
    "keep_signed_heads",
    "last_cancel",
    "latest",
    "limit_statements",
    "load_facts",
    "load_facts_many",
    "lock_account",
    "lock_accounts",
    "lock_intents",
    "locked_accounts",
    "log_signing_keys",
    "logged_by_minute",
    "mark_logged",
    "new_balances",
    "now",
    "order_keys",
    "orders",
    "page",
    "prune_bulk_operations",
    "prune_quotes",
    "prune_refusals",
    "publish_signing_key",
    "refusal_keys",
    "refusals",
    "refuse",
    "remember",
    "request_read",
    "roll_up",
    "save_bulk_operation",
    "save_day_equities",
    "save_overloads",
    "save_signed_heads",
    "sequence_before",
    "still_open",
    "stored_signature",
    "timeline",
    "unfinished_bulk_operations",
    "unlogged_refusals",
    "waiting_cancels",
    "with_key_budget",
    "with_order_facts",
    "with_order_facts_many",
]
