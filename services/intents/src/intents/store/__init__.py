"""The only SQL on the tables of intents."""

from intents.store.append import (
    FactsChanged,
    append_amendment,
    append_creates,
    append_creates_in_rounds,
    confirm_written,
    remember,
)
from intents.store.connections import CommitOutcomeUnknown, OpenTransaction, PreparedConnections, Transaction
from intents.store.epochs import LogEpoch, begin_epoch, current_epoch, epochs
from intents.store.events import append_to_all
from intents.store.facts import FactsQuery, LoadedFacts, load_facts, load_facts_many, with_order_facts
from intents.store.locking import lock_account, lock_intents, locked_accounts
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
    written_at,
)
from intents.store.refusals import prune_refusals, refuse
from intents.store.signed_heads import (
    HeadToSign,
    StoredSignature,
    closing_head,
    heads_to_sign,
    keep_signed_heads,
    log_signing_keys,
    publish_signing_key,
    save_signed_heads,
    stored_signature,
)
from intents.store.statistics import accounts_to_roll_up, counts, forget_old_keys, now, roll_up
from intents.store.tables import METADATA, SCHEMA

__all__ = [
    "METADATA",
    "SCHEMA",
    "CommitOutcomeUnknown",
    "FactsChanged",
    "FactsQuery",
    "HeadToSign",
    "LoadedFacts",
    "LogEpoch",
    "OpenTransaction",
    "PreparedConnections",
    "StoredSignature",
    "Transaction",
    "account",
    "accounts_of",
    "accounts_to_roll_up",
    "append_amendment",
    "append_creates",
    "append_creates_in_rounds",
    "append_to_all",
    "begin_epoch",
    "by_id",
    "closing_head",
    "confirm_written",
    "counts",
    "current_epoch",
    "entries",
    "epochs",
    "forget_old_keys",
    "head",
    "heads_to_sign",
    "history",
    "keep_signed_heads",
    "last_cancel",
    "latest",
    "limit_statements",
    "load_facts",
    "load_facts_many",
    "lock_account",
    "lock_intents",
    "locked_accounts",
    "log_signing_keys",
    "now",
    "page",
    "prune_refusals",
    "publish_signing_key",
    "refuse",
    "remember",
    "roll_up",
    "save_signed_heads",
    "stored_signature",
    "with_order_facts",
    "written_at",
]
