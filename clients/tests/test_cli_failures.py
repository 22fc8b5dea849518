"""Every failure has its exit code, says what to do, and names the request."""

import json

import pytest
from click.testing import CliRunner

import tip_client
from tip import cli
from tip.sdk_failures import failure_of
from tip_client.errors import ApiError


def problem(kind: type[ApiError], status: int = 422, **members: object) -> ApiError:
    error = kind(status, "some_code", "In words.", members)
    error.request_id = "request-1"
    return error


REASON = {"code": "QUANTITY_ABOVE_LIMIT", "control": "limits", "version": 2, "message": "500 is above 100"}


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (problem(tip_client.ControlRejected, reasons=[REASON]), 1),
        (problem(tip_client.InvalidRequest, 400), 1),
        (problem(tip_client.Unauthenticated, 401), 1),
        (problem(tip_client.Forbidden, 403), 1),
        (problem(tip_client.NotFound, 404), 1),
        (problem(tip_client.RateLimited, 429), 1),
        (problem(tip_client.ServerError, 500), 1),
        (tip_client.OrderEnded("ended", None), 1),
        (tip_client.ConfigurationError("no such profile"), 2),
        (problem(tip_client.Unavailable, 503), 3),
        (tip_client.ConnectionFailed("No answer.", was_sent=False, request_id="request-1"), 3),
        (tip_client.UnexpectedAnswer("The answer is not JSON."), 3),
        (tip_client.OutcomeUnknown("Unknown.", idempotency_key="key-1", request_id="request-1"), 4),
        (tip_client.Timeout("The order goes on."), 4),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_of_the_sdk_has_its_exit_code(error: tip_client.TipError, exit_code: int) -> None:
    assert failure_of(error).exit_code == exit_code


def test_a_refusal_gives_every_reason_and_the_request() -> None:
    failure = failure_of(problem(tip_client.ControlRejected, reasons=[REASON, REASON | {"code": "SYMBOL_DISABLED"}]))

    assert failure.lines()[0] == (
        "tip: refused: 500 is above 100 (QUANTITY_ABOVE_LIMIT); 500 is above 100 (SYMBOL_DISABLED)"
    )
    assert "tip preview" in failure.lines()[1] and failure.lines()[2] == "     request request-1"
    assert failure.document()["error"]["reasons"][0]["code"] == "QUANTITY_ABOVE_LIMIT"


def test_an_unknown_outcome_says_how_to_find_out() -> None:
    failure = failure_of(tip_client.OutcomeUnknown("Unknown.", idempotency_key="key-1", request_id=None))

    assert failure.hint == "repeat the same command with --idempotency-key key-1 within 24 hours: it is done once"
    assert failure.document()["error"]["idempotency_key"] == "key-1"


NOBODY = {"TIP_URL": "http://127.0.0.1:9", "TIP_KEY": "k", "TIP_ACCOUNT": "9202138f-45bd-58e2-a0ad-e3575587932f"}


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tip.callers.DEADLINE_S", 0.1)


@pytest.mark.usefixtures("quickly")
def test_a_platform_that_is_not_there_is_exit_code_3(tmp_path) -> None:
    plain = CliRunner().invoke(cli.main, ["balances"], env={**NOBODY, "XDG_CONFIG_HOME": str(tmp_path)})
    for_programs = CliRunner().invoke(
        cli.main, ["balances", "--json"], env={**NOBODY, "XDG_CONFIG_HOME": str(tmp_path)}
    )

    assert (plain.exit_code, plain.stdout) == (3, "")
    assert "tip doctor" in plain.stderr and "request " in plain.stderr
    assert for_programs.exit_code == 3 and for_programs.stdout == ""
    assert json.loads(for_programs.stderr)["error"]["code"] == "unreachable"


@pytest.mark.parametrize(
    "words",
    [
        ["buy", "AAPL", "none"], ["buy", "AAPL"], ["sell", "AAPL", "-1"], ["orders", "--open", "--status", "FILLED"],
        ["orders", "--follow", "--open"], ["orders", "--follow", "--status", "FILLED"],
        ["orders", "--follow", "--tag", "alpha"],
        ["cancel"], ["cancel", "x", "--all"], ["cancel", "x", "--symbol", "AAPL"], ["close"], ["close", "A", "--all"],
        ["replace", "93327def"], ["refusals", "--since", "soon"], ["halt", "--reducing", "--cancel-open"],
        ["accounts", "delete", ""], ["accounts", "create", "x"], ["keys", "create", "x"], ["people", "add", "x", "y"],
        ["limits", "set"], ["limits", "remove", "none"], ["controls", "hours", "AAPL"], ["statement", "--json"],
        ["preview", "hold", "AAPL", "1"], ["--profile", "none", "balances"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_wrong_command_is_exit_code_2_and_calls_nobody(words: list[str], tmp_path) -> None:
    answer = CliRunner().invoke(cli.main, words, env={**NOBODY, "XDG_CONFIG_HOME": str(tmp_path)})

    assert answer.exit_code == 2, answer.output
