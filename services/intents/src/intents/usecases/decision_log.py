"""One line in the log for each command that was decided, by which its way through the platform can be followed."""

from collections.abc import Iterable
from typing import Any

from chassis import logs, tracing
from intents import model
from intents.usecases.outcomes import Deferred, Outcome, PendingSubmit, Result, SiblingRefused

log = logs.get(__name__)
_UNDECIDED = (Deferred, SiblingRefused)


def log_decisions(pending: Iterable[PendingSubmit], outcomes: Iterable[Outcome]) -> None:
    for item, outcome in zip(pending, outcomes, strict=True):
        submission = item.submission
        if isinstance(submission, model.Submission) and not submission.dry_run and not isinstance(outcome, _UNDECIDED):
            _log_decision(submission, outcome)


def _log_decision(submission: model.Submission, outcome: Outcome) -> None:
    event, about = _accepted(outcome) if isinstance(outcome, Result) else _failed(submission, outcome)
    log.info(
        event,
        type=str(submission.command.type),
        account_id=str(submission.account_id),
        request_id=submission.request_id,
        trace_id=tracing.trace_id(submission.traceparent),
        **about,
    )


def _accepted(result: Result) -> tuple[str, dict[str, Any]]:
    return "command_accepted" if result.is_new else "command_repeated", {
        "intent_id": str(result.action.intent_id),
        "action_id": str(result.action.id),
    }


def _failed(submission: model.Submission, error: Exception) -> tuple[str, dict[str, Any]]:
    """Only a refusal proves that nothing was written."""
    about: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, model.ControlRejected):
        about["codes"] = [reason["code"] for reason in error.problem["reasons"]]
    if intent_id := submission.command.ref_intent_id:
        about["intent_id"] = str(intent_id)
    return "command_refused" if isinstance(error, model.Refusal) else "command_undecided", about
