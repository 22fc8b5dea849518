"""What was sent is never reported as not done, and what says too little acts on nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

import tip_client
from tip import callers, sending
from tip.exits import OUTCOME_UNKNOWN, Failure


@pytest.fixture
def submitter(caller: Any, whole_platform: Platform, own_account: str) -> Iterator[TipCaller]:
    """`tip` with a key that may submit and not read."""
    with whole_platform.admin() as admin:
        key = admin.keys.create("submits only", environment="paper", permissions=["intent:edit"])
        url = whole_platform.local["base_url"]
        yield TipCaller({"TIP_URL": url, "TIP_KEY": key.key, "TIP_ACCOUNT": own_account, "XDG_CONFIG_HOME": "/none"})
        admin.keys.delete(key.id)


def test_an_order_whose_timeline_may_not_be_read_is_done(
    submitter: TipCaller, client: tip_client.Client, symbol: str
) -> None:
    assert submitter.done("buy", symbol, "1").startswith("✓ ")
    assert len(list(client.orders())) == 1


def test_an_order_that_cannot_be_waited_for_is_accepted_and_not_refused(
    submitter: TipCaller, client: tip_client.Client, symbol: str
) -> None:
    answer = submitter("buy", symbol, "1", "--wait", "--json", "--idempotency-key", "mine")

    [order] = client.orders()
    error = json.loads(answer.stderr)["error"]
    assert (answer.exit_code, error["code"]) == (4, "accepted")
    assert (error["intent_id"], error["idempotency_key"]) == (order.intent_id, "mine")
    assert "do not repeat it" in error["hint"]


@pytest.mark.parametrize(
    "words",
    [("cancel", ""), ("replace", "", "--limit", "2"), ("show", ""), ("cancel", "a"), ("cancel", "zzzz"),
     ("buy", "AAPL", "1", "--account", ""), ("buy", "AAPL", "1", "--profile", ""),
     ("buy", "AAPL", "1", "--idempotency-key", "")],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_word_acts_on_nothing(tip: TipCaller, client: tip_client.Client, words: tuple[str, ...]) -> None:
    client.submit(tip_client.Limit("SIM.OPEN", "BUY", 1, limit="1"))

    assert tip(*words).exit_code == 2
    [order] = client.orders()
    assert order.status != "CANCELED" and order.last_action.command.type == "CREATE"


def test_the_log_of_the_account_that_is_named_is_verified(
    tip: TipCaller, whole_platform: Platform, symbol: str
) -> None:
    tip.done("buy", symbol, "1", "--wait")
    other = whole_platform.account()

    assert tip.json("verify", "--online", "--account", other)["account_id"] == other
    assert f"of account {other[:8]} verified" in tip.done("verify", "--online", "--account", other)
    assert tip("verify", "--online", "--public-key", "00").exit_code == 2


def test_a_default_profile_without_a_credential_is_not_the_demo(
    caller: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tip"
    folder.mkdir()
    (folder / "config.toml").write_text('default = "prod"\n[profiles.prod]\nurl = "https://prod.example"\n')
    (folder / "config.toml").chmod(0o600)
    for name, value in caller().environment.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    monkeypatch.delenv("TIP_PROFILE")

    found = callers.settings_of(None)

    assert (found.url, found.key) == ("https://prod.example", None)


def interrupted() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_while_it_is_sent_leaves_the_outcome_unknown_and_names_the_key() -> None:
    with pytest.raises(Failure) as caught:
        sending.interruptible("mine", interrupted)

    assert (caught.value.exit_code, caught.value.code) == (OUTCOME_UNKNOWN, "interrupted")
    assert caught.value.details == {"idempotency_key": "mine"}


def test_ctrl_c_afterwards_says_that_it_is_done() -> None:
    with pytest.raises(Failure) as caught, sending.accepted("it was accepted", "look", "mine", intent_id="i"):
        interrupted()

    assert (caught.value.exit_code, caught.value.code) == (OUTCOME_UNKNOWN, "accepted")
    assert caught.value.details == {"idempotency_key": "mine", "intent_id": "i"}


@pytest.mark.parametrize(
    "failure",
    [tip_client.Unavailable(503, "unavailable", "db"), tip_client.Forbidden(403, "forbidden", "no"),
     tip_client.ConnectionFailed("gone", was_sent=True), tip_client.Timeout("too long")],
    ids=lambda failure: type(failure).__name__,
)  # fmt: skip
def test_no_failure_after_the_command_was_accepted_reads_as_not_done(failure: Exception) -> None:
    with pytest.raises(Failure) as caught, sending.accepted("it was accepted", "look", None):
        raise failure

    assert caught.value.exit_code == OUTCOME_UNKNOWN
    assert "nothing was done" not in " ".join(caught.value.lines())
