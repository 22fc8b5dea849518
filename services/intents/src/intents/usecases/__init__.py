"""What intents does: one function per use case, one transaction each."""

from intents.usecases.bulk_operations import account_of, facts_of_account, read_bulk_operation, request_bulk_operation
from intents.usecases.bulk_runner import run_bulk_operations
from intents.usecases.daily_loss import judge_daily_losses
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps
from intents.usecases.feed_consumer import FEEDS, CancelsAhead, drain_feed
from intents.usecases.maintenance import run_maintenance
from intents.usecases.outcomes import Deferred, Outcome, PendingSubmit, Policy, Result, SiblingRefused
from intents.usecases.reads import (
    Page,
    Reader,
    Verification,
    action_history,
    latest_action,
    list_actions,
    rows_to_verify,
    statistics,
    verify,
)
from intents.usecases.signing import SIGNED_AT_ONCE, SigningDeps, sign_heads
from intents.usecases.statements import log_signing_keys, statement
from intents.usecases.submit import load_facts, load_facts_many, submit, submit_own

__all__ = [
    "FEEDS",
    "SIGNED_AT_ONCE",
    "CancelsAhead",
    "Deadline",
    "Deferred",
    "Deps",
    "Outcome",
    "Page",
    "PendingSubmit",
    "Policy",
    "Reader",
    "Result",
    "SiblingRefused",
    "SigningDeps",
    "Verification",
    "account_of",
    "action_history",
    "drain_feed",
    "facts_of_account",
    "judge_daily_losses",
    "latest_action",
    "list_actions",
    "load_facts",
    "load_facts_many",
    "log_signing_keys",
    "read_bulk_operation",
    "request_bulk_operation",
    "rows_to_verify",
    "run_bulk_operations",
    "run_maintenance",
    "sign_heads",
    "statement",
    "statistics",
    "submit",
    "submit_own",
    "verify",
]
