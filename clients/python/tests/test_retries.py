"""Whether a request is sent again, and what its caller learns: decided without a connection or a clock."""

import pytest

from tip_client import errors
from tip_client.models.accounts import Account
from tip_client.models.trading import Action
from tip_client.problems import problem_of
from tip_client.request import Request, ask, change, command, create, delete, get
from tip_client.retries import Attempts, backoff

LOST = errors.ConnectionFailed("lost", was_sent=True)
UNREACHED = errors.ConnectionFailed("refused", was_sent=False)


def submit() -> Request[Action]:
    return command("/v1/accounts/a/intents", Action, {}, "key-1")


def problem(status: int, code: str, **headers: str) -> errors.ApiError:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return problem_of(status, named, b'{"code": "%s"}' % code.encode())


@pytest.mark.parametrize(
    "failure",
    [
        LOST,
        UNREACHED,
        problem(429, "rate_limited", retry_after="1"),
        problem(502, "unavailable"),
        problem(503, "unavailable"),
        problem(503, "outcome_unknown"),
        problem(503, "overloaded"),
        problem(504, "error"),
        problem(409, "idempotent_request_in_flight"),
    ],
    ids=str,
)
def test_a_command_with_a_key_is_repeated_after_every_passing_failure(failure: errors.TipError) -> None:
    assert Attempts(submit(), deadline=30.0).delay_after(failure, 0.0, 0.5) > 0


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "malformed_json", errors.InvalidRequest),
        (401, "unauthenticated", errors.Unauthenticated),
        (403, "entitlement_required", errors.EntitlementRequired),
        (404, "not_found", errors.NotFound),
        (409, "intent_busy", errors.IntentBusy),
        (409, "something_new", errors.Conflict),
        (412, "precondition_failed", errors.PreconditionFailed),
        (422, "control_rejected", errors.ControlRejected),
        (422, "something_new", errors.InvalidRequest),
        (500, "internal", errors.OutcomeUnknown),
    ],
)
def test_what_will_not_pass_is_raised_at_once(status: int, code: str, kind: type[errors.TipError]) -> None:
    with pytest.raises(kind):
        Attempts(submit(), deadline=30.0).delay_after(problem(status, code), 0.0, 0.5)


def test_an_answer_to_a_command_that_cannot_be_read_names_its_key() -> None:
    unread = Attempts(submit(), deadline=30.0).unreadable(errors.UnexpectedAnswer("no JSON"))
    question = Attempts(get("/v1/accounts", Account), deadline=30.0).unreadable(errors.UnexpectedAnswer("no JSON"))

    assert isinstance(unread, errors.OutcomeUnknown) and unread.idempotency_key == "key-1"
    assert isinstance(question, errors.UnexpectedAnswer)


@pytest.mark.parametrize("failure", [LOST, problem(502, "unavailable"), problem(503, "outcome_unknown")], ids=str)
def test_a_creation_without_a_key_is_never_repeated_when_it_may_have_been_done(failure: errors.TipError) -> None:
    with pytest.raises(errors.OutcomeUnknown):
        Attempts(create("/v1/accounts", Account), deadline=30.0).delay_after(failure, 0.0, 0.5)


@pytest.mark.parametrize("failure", [UNREACHED, problem(429, "rate_limited"), problem(503, "unavailable")], ids=str)
def test_a_creation_without_a_key_is_repeated_when_nothing_was_done(failure: errors.TipError) -> None:
    assert Attempts(create("/v1/accounts", Account), deadline=30.0).delay_after(failure, 0.0, 0.5) > 0


def test_a_change_of_one_version_is_not_repeated_in_doubt() -> None:
    with pytest.raises(errors.OutcomeUnknown):
        Attempts(change("PUT", "/x", Account, {}, if_match=3), deadline=30.0).delay_after(LOST, 0.0, 0.5)


def test_a_503_that_no_platform_wrote_promises_nothing() -> None:
    failure = problem_of(503, {"content-type": "text/html"}, b"<h1>503</h1>")

    assert failure.is_transient and failure.may_have_been_done


def test_at_the_deadline_a_command_in_doubt_is_unknown_and_names_its_key() -> None:
    attempts = Attempts(submit(), deadline=1.0, request_id="r-1")
    attempts.delay_after(LOST, 0.0, 0.5)

    with pytest.raises(errors.OutcomeUnknown) as raised:
        attempts.delay_after(problem(503, "unavailable"), 0.99, 0.5)

    assert (raised.value.idempotency_key, raised.value.request_id) == ("key-1", "r-1")


def test_at_the_deadline_a_command_that_was_certainly_not_done_is_not_called_unknown() -> None:
    attempts = Attempts(submit(), deadline=1.0)
    attempts.delay_after(UNREACHED, 0.0, 0.5)

    with pytest.raises(errors.Unavailable):
        attempts.delay_after(problem(503, "unavailable"), 0.99, 0.5)


@pytest.mark.parametrize(
    "question", [get("/v1/accounts", Account), ask("/v1/preview", Account, {})], ids=["GET", "POST"]
)
def test_a_question_is_never_unknown(question: Request[Account]) -> None:
    with pytest.raises(errors.ConnectionFailed):
        Attempts(question, deadline=0.0).delay_after(LOST, 0.0, 0.5)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_credential_that_ends_between_two_attempts_leaves_the_first_unknown(status: int) -> None:
    attempts = Attempts(submit(), deadline=30.0)
    attempts.delay_after(LOST, 0.0, 0.5)

    with pytest.raises(errors.OutcomeUnknown):
        attempts.delay_after(problem(status, "error"), 0.5, 0.5)


def test_a_refusal_behind_the_key_settles_what_was_in_doubt() -> None:
    attempts = Attempts(submit(), deadline=30.0)
    attempts.delay_after(LOST, 0.0, 0.5)

    with pytest.raises(errors.ControlRejected):
        attempts.delay_after(problem(422, "control_rejected"), 0.5, 0.5)


def test_what_is_gone_at_the_second_delete_was_deleted_by_the_first() -> None:
    attempts = Attempts(delete("/v1/accounts/a"), deadline=30.0)
    gone = problem(404, "not_found")

    assert not attempts.settles(gone)
    attempts.delay_after(LOST, 0.0, 0.5)
    assert attempts.settles(gone)


def test_retry_after_is_the_least_delay() -> None:
    assert backoff(1, 7.0, 0.0) > 7.0
    assert Attempts(submit(), deadline=30.0).delay_after(problem(429, "x", retry_after="3"), 0.0, 0.0) > 3.0


def test_a_wish_beyond_the_deadline_is_not_waited_for() -> None:
    with pytest.raises(errors.RateLimited):
        Attempts(submit(), deadline=30.0).delay_after(problem(429, "x", retry_after="99999999999"), 0.0, 0.0)


def test_delays_grow_are_spread_and_bounded() -> None:
    assert [backoff(count, None, 1.0) for count in (1, 2, 3)] == [0.1, 0.2, 0.4]
    assert backoff(500, None, 1.0) == 2.0
    assert backoff(1, None, 0.0) < backoff(1, None, 0.9)
