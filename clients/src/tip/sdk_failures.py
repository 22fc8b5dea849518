"""What the SDK raises, as exit code, message and what to do."""

from collections.abc import Callable

import tip_client as tip
from tip.exits import OUTCOME_UNKNOWN, REFUSED, UNREACHABLE, WRONG_USAGE, Failure

_HINTS: tuple[tuple[type[tip.TipError], str], ...] = (
    (tip.LoginEnded, "`tip login` signs in again"),
    (tip.Unauthenticated, "give a valid key: TIP_KEY, `tip login` or `tip profiles add`; `tip doctor` shows who calls"),
    (tip.EntitlementRequired, "the organization needs the entitlement; its operator grants it"),
    (tip.Forbidden, "--profile chooses another credential; `tip doctor` shows what this one may do"),
    (tip.ControlRejected, "`tip refusals` lists what was refused, `tip preview` tries without submitting"),
    (tip.BrokerCannot, "order another kind, or use an account at another broker"),
    (tip.IntentTerminal, "the order has ended: `tip show` has its timeline"),
    (tip.IntentBusy, "wait until the pending replacement or cancel is settled, then try again"),
    (tip.PreconditionFailed, "it was changed meanwhile: look at it again, then repeat the command"),
    (tip.RateLimited, "wait a moment, then repeat the command"),
    (tip.Unavailable, "wait a moment, then repeat the command: nothing was done"),
    (tip.ServerError, "a defect of the platform: report it with the request id"),
    (tip.ConnectionFailed, "`tip status` shows what runs here, `tip doctor` what is reachable; TIP_URL is the address"),
    (tip.UnexpectedAnswer, "another server answers at this address: check TIP_URL or the profile"),
    (tip.Timeout, "it goes on: `tip orders --open` shows it"),
)

_HINTS_BY_CODE = {
    "open_intents": "--cancel-open cancels its open orders and then deletes it",
}


def failure_of(error: tip.TipError) -> Failure:
    """The first kind that the error is of decides how it is reported."""
    for kind, report in _REPORTS:
        if isinstance(error, kind):
            return report(error)
    return Failure(str(error))


def _api_problem(error: tip.ApiError) -> Failure:
    code = UNREACHABLE if isinstance(error, tip.Unavailable) else REFUSED
    reasons = [{"code": reason.code, "control": reason.control, "message": reason.message} for reason in error.reasons]
    details = {"status": error.status, "pointer": error.pointer, "reasons": reasons}
    return Failure(_sentence(error), code, error.code, _hint(error), error.request_id, details)


def _sentence(error: tip.ApiError) -> str:
    """Every reason of controls, every field that is wrong, or what the platform says of the whole."""
    if error.reasons:
        return "refused: " + "; ".join(f"{reason.message} ({reason.code})" for reason in error.reasons)
    if error.errors:
        return f"{error.code}: " + "; ".join(f"{field.message} ({field.pointer})" for field in error.errors)
    return f"{error.code}: {error.detail}" if error.detail else error.code


def _outcome_unknown(error: tip.OutcomeUnknown) -> Failure:
    key = error.idempotency_key
    repeat = f"repeat the same command with --idempotency-key {key} within 24 hours: it is done once" if key else None
    hint = repeat or "look whether it was done before you repeat it"
    details = {"idempotency_key": key}
    return Failure(str(error), OUTCOME_UNKNOWN, "outcome_unknown", hint, error.request_id, details)


def _no_answer(error: tip.ConnectionFailed) -> Failure:
    return Failure(str(error), UNREACHABLE, "unreachable", _hint(error), error.request_id)


def _plain(exit_code: int, code: str) -> Callable[[tip.TipError], Failure]:
    return lambda error: Failure(str(error), exit_code, code, _hint(error))


def _hint(error: tip.TipError) -> str | None:
    by_code = _HINTS_BY_CODE.get(error.code) if isinstance(error, tip.ApiError) else None
    return by_code or next((hint for kind, hint in _HINTS if isinstance(error, kind)), None)


_REPORTS: tuple[tuple[type[tip.TipError], Callable[..., Failure]], ...] = (
    (tip.ApiError, _api_problem),
    (tip.OutcomeUnknown, _outcome_unknown),
    (tip.ConnectionFailed, _no_answer),
    (tip.UnexpectedAnswer, _plain(UNREACHABLE, "unexpected_answer")),
    (tip.Timeout, _plain(OUTCOME_UNKNOWN, "timeout")),
    (tip.OrderEnded, _plain(REFUSED, "order_ended")),
    (tip.LoginRefused, _plain(REFUSED, "login_refused")),
    (tip.ConfigurationError, _plain(WRONG_USAGE, "configuration")),
)
