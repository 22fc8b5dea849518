"""On the way to a broker: what the dispatcher remembers of accounts and their keys."""

import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4, uuid5

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

import credential_vault
from intents.execution.breaker import FAILURES
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.clock import elapsed
from intents.execution.credentials import Credentials
from intents.execution.model.commands import ClaimSnapshot, LeasedCommand
from intents.execution.model.verdicts import Decided, RetryLater, Unknown
from intents.model import Spec, Status
from tip_brokers import Brokers, NotSent, Refused
from tip_testing.broker_conformance.hostile import BROKEN, Hostile
from tip_testing.ports import reserved_port

from .conftest import give_credential
from .paper_connections import at
from .scripted import Scripted
from .sending import NOW, leased_command


@pytest.fixture
def command(desk: Any) -> Callable[..., LeasedCommand]:
    """A CREATE that was claimed so many seconds ago."""

    def make(*, age: float = 0.0, **more: Any) -> LeasedCommand:
        claimed = elapsed() - age
        values: dict[str, Any] = {
            "account_id": desk.account_id, "organization_id": desk.organization.id, "lease_ends": claimed + 60,
            "spec": Spec("Market", {"quantity": "1"}), "quantity": Decimal(1),
            "snapshot": ClaimSnapshot(claimed, 1, "AUTO", None, 1, NOW, 1, 0, None),
        }  # fmt: skip
        return leased_command(**(values | more))

    return make


@pytest.fixture
def dispatcher(desk: Any, scripted: Scripted) -> BrokerDispatcher:
    addresses = at(scripted.url, connect_seconds=5, read_seconds=10)
    return BrokerDispatcher(Brokers(addresses), Credentials(desk.deps.engine, "for-tests-only"))


def test_a_refused_key_pair_is_reported_until_it_was_and_then_not_tried_again(desk, dispatcher, scripted, command):
    scripted.says(401, {"message": "request is not authorized"})
    give_credential(desk, "was-good-yesterday")
    dispatcher.credentials.keyring = credential_vault.Keyring.from_text(desk.platform.vault_key)
    name = f"{uuid5(desk.account_id, 'credential')}:1"
    reported: list[str] = []

    def report(_account_id: Any, pair: Any) -> None:
        reported.append(pair.reference)
        if len(reported) == 1:
            raise OperationalError("report", None, Exception("the database has gone away"))

    dispatcher.on_refused = report

    verdicts = [dispatcher.dispatch(command(credential=name)) for _ in range(3)]

    assert [verdict.code for verdict in verdicts] == ["CREDENTIAL_INVALID"] * 3
    assert reported == [name] * 2 and len(scripted.requests) == 2


def test_a_refused_key_pair_that_is_still_to_be_used_is_tried_again_after_a_minute(
    desk, dispatcher, scripted, command, monkeypatch
):
    """Its broker may accept it again, by which accounts has it active again, in the same version."""
    scripted.says(401, {"message": "request is not authorized"})
    give_credential(desk, "was-good-yesterday")
    dispatcher.credentials.keyring = credential_vault.Keyring.from_text(desk.platform.vault_key)
    sent = command(credential=f"{uuid5(desk.account_id, 'credential')}:1")
    counts = []
    for seconds in (60.0, 0.0):
        monkeypatch.setattr("intents.execution.broker_dispatcher.REFUSED_SECONDS", seconds)
        dispatcher._refused.clear()
        scripted.requests.clear()
        for _ in range(2):
            dispatcher.dispatch(sent)
        counts.append(len(scripted.requests))

    assert counts == [1, 2]


def test_the_pair_of_an_account_without_a_credential_is_tried_again_after_a_refusal(dispatcher, scripted, command):
    """It has no other version that could be waited for."""
    scripted.says(401, {"message": "request is not authorized"})

    verdicts = [dispatcher.dispatch(command()) for _ in range(3)]

    assert [verdict.code for verdict in verdicts] == ["CREDENTIAL_INVALID"] * 3 and len(scripted.requests) == 3


def test_a_command_that_could_not_be_sent_for_long_is_tried_again_as_soon_as_any_other(desk, command):
    nobody = Brokers(at(f"http://127.0.0.1:{reserved_port()}"))
    dispatcher = BrokerDispatcher(nobody, Credentials(desk.deps.engine, "for-tests-only"))

    verdict = dispatcher.dispatch(command(attempts=9))

    assert isinstance(verdict, RetryLater) and verdict.seconds < 1


def test_a_database_that_is_away_is_no_reason_to_doubt_what_was_sent(dispatcher, scripted, command):
    nowhere = create_engine(f"postgresql+psycopg2://nobody@127.0.0.1:{reserved_port()}/none")
    dispatcher.credentials = Credentials(nowhere, "for-tests-only")

    assert isinstance(dispatcher.dispatch(command()), RetryLater) and scripted.requests == []


@pytest.mark.parametrize("answer", [(401, {"message": "no"}), (429, {"message": "slow down"})])
def test_an_account_that_has_to_wait_is_left_alone_meanwhile(answer, desk, dispatcher, scripted, command):
    scripted.says(*answer, Retry_After="60")
    assert dispatcher.parked_accounts() == []

    dispatcher.dispatch(command())

    assert dispatcher.parked_accounts() == [desk.account_id]


def test_a_pause_that_the_broker_wishes_is_the_whole_accounts(dispatcher, scripted, command):
    scripted.says(429, {"message": "slow down"}, Retry_After="300")

    first, second = dispatcher.dispatch(command()), dispatcher.dispatch(command())

    assert first.seconds == 300 and 200 < second.seconds <= 300 and len(scripted.requests) == 1


def test_what_waited_for_others_is_claimed_again_before_it_is_sent(dispatcher, scripted, command):
    """A halt or a cancel that came meanwhile is seen only by a new claim."""
    assert dispatcher.dispatch(command(age=10)) == RetryLater(0.0, "claimed_too_long_ago")
    assert scripted.requests == []


def remember_login(desk: Any, credentials: Credentials) -> None:
    """Which account the key pair opens is known already, so that the first request is the order itself."""
    pair = credentials.pair(desk.account_id, "paper")
    credentials._logins[desk.account_id, pair.reference] = "the account"


@pytest.mark.parametrize("answer", list(BROKEN))
def test_a_broken_answer_leaves_the_outcome_unknown_and_never_rejects(answer, desk, command):
    with Hostile(BROKEN[answer]) as hostile:
        credentials = Credentials(desk.deps.engine, "for-tests-only")
        remember_login(desk, credentials)
        dispatcher = BrokerDispatcher(Brokers(at(hostile.address, connect_seconds=5, read_seconds=2)), credentials)

        verdict = dispatcher.dispatch(command(opened_account="the account"))

    assert isinstance(verdict, Unknown), verdict


def test_facts_that_cannot_be_read_again_are_no_reason_to_send_nor_to_doubt(dispatcher, scripted, command):
    scripted.says(200, {"id": "the account"})

    def away(_work: LeasedCommand) -> LeasedCommand:
        raise OperationalError("refresh", None, Exception("the database has gone away"))

    dispatcher.refresh = away

    assert isinstance(dispatcher.dispatch(command(age=1.5)), RetryLater)
    assert [method for method, _, _ in scripted.requests] == ["GET"]


def test_an_account_that_cannot_be_named_is_no_reason_to_doubt_what_was_sent(dispatcher, scripted, command):
    """Nothing is sent before it is known in which account at the broker it will be."""
    scripted.says(500, {"message": "oops"})

    assert isinstance(dispatcher.dispatch(command()), RetryLater)
    assert [method for method, _, _ in scripted.requests] == ["GET"]


def test_failures_of_one_organization_shut_the_way_to_the_broker_for_nobody_else(dispatcher, scripted, command):
    scripted.says(500, {"message": "oops"})
    attacker = uuid4()
    for _ in range(3 * FAILURES):
        dispatcher.dispatch(command(organization_id=attacker))
    dispatcher.breakers.of("paper", "paper")._organizations[attacker].until = time.monotonic() + 60
    sent = len(scripted.requests)

    assert dispatcher.breakers.states() == {"paper paper": "closed"}
    assert dispatcher.dispatch(command(organization_id=attacker)).reason == "circuit_open"
    assert dispatcher.dispatch(command()).reason != "circuit_open" and len(scripted.requests) == sent + 1


def test_a_broker_that_cannot_be_reached_is_out_of_reach_for_all(desk, command):
    nobody = Brokers(at(f"http://127.0.0.1:{reserved_port()}"))
    dispatcher = BrokerDispatcher(nobody, Credentials(desk.deps.engine, "for-tests-only"))
    for _ in range(FAILURES):
        dispatcher.dispatch(command(organization_id=uuid4()))
    dispatcher.breakers.of("paper", "paper")._line.until = time.monotonic() + 60

    assert dispatcher.dispatch(command()).reason == "circuit_open"
    assert dispatcher.breakers.states() == {"paper paper": "open"}


@pytest.fixture
def failing(
    desk: Any, dispatcher: BrokerDispatcher, scripted: Scripted, command: Callable[..., LeasedCommand]
) -> BrokerDispatcher:
    """The circuit of the desk's organization is open, for a minute."""
    scripted.says(500, {"message": "oops"})
    for _ in range(FAILURES):
        dispatcher.dispatch(command())
    dispatcher.breakers.of("paper", "paper")._organizations[desk.organization.id].until = time.monotonic() + 60
    return dispatcher


def end_pause(desk: Any, dispatcher: BrokerDispatcher) -> None:
    """One command of the desk's organization may try the broker."""
    dispatcher.breakers.of("paper", "paper")._organizations[desk.organization.id].until = 0.0


def test_what_waits_for_an_open_circuit_has_a_place_and_what_has_failed_comes_last(failing, command):
    unsent, sent = command(), command(started_before=NOW)

    first, waiting = failing.dispatch(sent), failing.dispatch(unsent)
    failing.breakers.of("paper", "paper").failed(sent.organization_id, connected=True, command_id=sent.action_id)
    last = failing.dispatch(sent)

    assert {verdict.reason for verdict in (first, waiting, last)} == {"circuit_open"}
    assert first.waiting_since < waiting.waiting_since == last.waiting_since == NOW


def test_a_try_that_ends_in_an_error_of_our_own_does_not_keep_the_next_from_trying(desk, failing, command, monkeypatch):
    end_pause(desk, failing)

    def broken(*_anything: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(failing.brokers, "account", broken)
    with pytest.raises(ZeroDivisionError):
        failing.dispatch(command())
    monkeypatch.undo()

    assert failing.dispatch(command()).reason != "circuit_open"


@pytest.mark.parametrize("lease_is_lost", [True, False], ids=["lease lost", "canceled"])
def test_a_try_that_never_reached_the_broker_leaves_the_circuit_open(lease_is_lost, desk, failing, scripted, command):
    remember_login(desk, failing.credentials)
    failing.refresh = lambda given: None if lease_is_lost else replace(given, status=Status.PENDING_CANCEL)
    end_pause(desk, failing)
    sent = len(scripted.requests)

    verdict = failing.dispatch(command(age=1.1, opened_account="the account"))

    assert isinstance(verdict, RetryLater if lease_is_lost else Decided) and len(scripted.requests) == sent
    breaker = failing.breakers.of("paper", "paper")
    assert breaker.wait(desk.organization.id) == 0, "the next may try instead"
    assert breaker.wait(desk.organization.id) > 0, "and only one"


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(NotSent("markets_not_loaded", 0.5), 0.5), (Refused("UNKNOWN_SYMBOL", "no"), 0.25)],
    ids=["an adapter that asks for time", "a query that is refused"],
)
def test_what_says_nothing_about_the_line_opens_no_circuit(dispatcher, command, error, seconds):
    breaker, waiting = dispatcher.breakers.of("paper", "paper"), command()

    verdicts = [dispatcher._failed(breaker, waiting, None, error) for _ in range(20)]

    assert breaker.wait(waiting.organization_id) == 0
    assert {verdict.seconds for verdict in verdicts} == {seconds}
