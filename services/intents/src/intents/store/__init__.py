"""The only SQL on the tables of intents."""

from intents.store.admission import Known, Question, facts, facts_of, with_order_facts
from intents.store.appending import FactsChanged, New, Once, append, create_all, remember, written
from intents.store.direct import Direct, Uncertain
from intents.store.epochs import LogEpoch, begin_epoch, current_epoch, epochs
from intents.store.events import append_to_all
from intents.store.locking import held_accounts, lock_account, lock_intents
from intents.store.reads import (
    account,
    accounts_of,
    by_id,
    first_gap,
    head,
    history,
    last_cancel,
    latest,
    limit_statements,
    other_events,
    page,
)
from intents.store.refusals import prune_refusals, refuse
from intents.store.signed_heads import (
    HeadToSign,
    StoredSignature,
    heads_to_sign,
    publish_signing_key,
    save_signed_heads,
    stored_signature,
)
from intents.store.statistics import behind, counts, forget_old_keys, now, roll
from intents.store.tables import METADATA, SCHEMA

__all__ = [
    "METADATA",
    "SCHEMA",
    "Direct",
    "FactsChanged",
    "HeadToSign",
    "Known",
    "LogEpoch",
    "New",
    "Once",
    "Question",
    "StoredSignature",
    "Uncertain",
    "account",
    "accounts_of",
    "append",
    "append_to_all",
    "begin_epoch",
    "behind",
    "by_id",
    "counts",
    "create_all",
    "current_epoch",
    "epochs",
    "facts",
    "facts_of",
    "first_gap",
    "forget_old_keys",
    "head",
    "heads_to_sign",
    "held_accounts",
    "history",
    "last_cancel",
    "latest",
    "limit_statements",
    "lock_account",
    "lock_intents",
    "now",
    "other_events",
    "page",
    "prune_refusals",
    "publish_signing_key",
    "refuse",
    "remember",
    "roll",
    "save_signed_heads",
    "stored_signature",
    "with_order_facts",
    "written",
]
