"""What intents does: one function per use case, one transaction each."""

from intents.usecases.batch import Outcome, submit_all, submit_each
from intents.usecases.deps import Deps
from intents.usecases.hearing import hear
from intents.usecases.housekeeping import keep_house
from intents.usecases.reads import (
    Page,
    Reader,
    Verification,
    action_history,
    latest_action,
    list_actions,
    statistics,
    verify,
)
from intents.usecases.reports import record
from intents.usecases.submit import Result, Submission, look, submit

__all__ = [
    "Deps",
    "Outcome",
    "Page",
    "Reader",
    "Result",
    "Submission",
    "Verification",
    "action_history",
    "hear",
    "keep_house",
    "latest_action",
    "list_actions",
    "look",
    "record",
    "statistics",
    "submit",
    "submit_all",
    "submit_each",
    "verify",
]
