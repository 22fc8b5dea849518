"""What intents does: one function per use case, one transaction each."""

from intents.usecases.batch import Outcome, submit_all, submit_each
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps
from intents.usecases.feed_consumer import FEEDS, drain_feed
from intents.usecases.maintenance import run_maintenance
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
from intents.usecases.submit import Result, Submission, load_facts, submit
from intents.usecases.together import Together, Told, load_facts_many, submit_together

__all__ = [
    "FEEDS",
    "SIGNED_AT_ONCE",
    "Deadline",
    "Deps",
    "Outcome",
    "Page",
    "Reader",
    "Result",
    "SigningDeps",
    "Submission",
    "Together",
    "Told",
    "Verification",
    "action_history",
    "drain_feed",
    "latest_action",
    "list_actions",
    "load_facts",
    "load_facts_many",
    "rows_to_verify",
    "run_maintenance",
    "sign_heads",
    "statistics",
    "submit",
    "submit_all",
    "submit_each",
    "submit_together",
    "verify",
]
