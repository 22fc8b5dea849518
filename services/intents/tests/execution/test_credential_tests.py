"""A credential is tested by its broker before anything is done with it, and what it opens is read at once."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest

from credential_vault import Keyring
from intents.execution import recorder
from intents.execution.credentials import (
    CredentialInvalid,
    CredentialPending,
    Credentials,
    report_accepted,
    report_refused,
    report_tested,
)
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.watches import Watch
from tip_brokers import Brokers, CredentialRefused, Unreachable

from .conftest import PAPER_SECRET, give_credential
from .paper_connections import at


@pytest.fixture
def reconcile(desk: Any) -> Any:
    """Reads the desk's account once, as a reconciler does."""

    def run(url: str, tested_at: str | None = None) -> None:
        deps = desk.deps
        credentials = Credentials(deps.engine, PAPER_SECRET, Keyring.from_text(desk.platform.vault_key))
        records = recorder.Recorder(deps.connections)
        made, tester = (
            Reconciler(deps.engine, Brokers(at(place)), credentials, records, 5.0, streams=0)
            for place in (url, tested_at or url)
        )
        made.on_accepted = lambda account_id, pair: report_accepted(deps.outbox, account_id, pair)
        made.on_refused = lambda account_id, pair: report_refused(deps.outbox, account_id, pair)
        made.on_tested = lambda account_id, tested, outcome: report_tested(deps.outbox, account_id, tested, outcome)
        made.__post_init__()
        made._tests = replace(made._tests, broker_of=tester._comparison.broker_of)
        account = WatchedAccount(desk.account_id, desk.organization.id, "paper", "paper", False, False)
        pause = made._tests.run(account)
        list(made._comparison.differences(Watch(account), None))
        assert (pause > 0) == (tested_at is not None)

    return run


def events(desk: Any) -> list[tuple[str, int]]:
    rows = [row for row in desk.outbox() if row["event_type"].startswith("credential.")]
    return [(row["event_type"], row["payload"]["version"]) for row in rows]


def test_a_credential_that_the_broker_accepts_is_reported_and_used_at_once(desk, paper, reconcile):
    give_credential(desk, "good", status="pending")

    reconcile(paper.url)

    assert events(desk) == [("credential.valid", 1)]
    assert desk.rows("balance"), "what it opens was read with it"


def test_a_credential_that_the_broker_refuses_is_reported_and_not_used(desk, paper, reconcile):
    give_credential(desk, "INVALID", status="pending")

    with pytest.raises(CredentialPending):
        reconcile(paper.url)

    assert events(desk) == [("credential.invalid", 1)]
    assert desk.rows("balance") == []


def test_a_new_credential_that_cannot_be_tested_keeps_nothing_from_being_read_with_todays(desk, paper, reconcile):
    give_credential(desk, "good")
    give_credential(desk, "next", status="pending", name="next")

    reconcile(paper.url, tested_at="http://127.0.0.1:1")

    assert desk.rows("balance") and events(desk) == []


def test_a_broker_that_is_down_leaves_a_credential_pending(desk, reconcile):
    give_credential(desk, "good", status="pending")

    with pytest.raises(CredentialPending):
        reconcile("http://127.0.0.1:1", tested_at="http://127.0.0.1:1")

    assert events(desk) == []


def test_a_credential_whose_newest_secret_is_not_in_the_vault_is_not_tested(desk, paper, reconcile):
    give_credential(desk, "good", status="pending")
    desk.execute("UPDATE accounts.credential SET version = 2 WHERE account_id = :account_id")

    with pytest.raises(CredentialPending):
        reconcile(paper.url)

    assert events(desk) == []


# On request


def request_test(desk: Any) -> UUID:
    """As accounts does."""
    test_id = uuid4()
    desk.execute(
        "UPDATE accounts.credential SET test_id = :test_id, test_status = 'pending' WHERE account_id = :account_id",
        test_id=test_id,
    )
    return test_id


def outcomes(desk: Any) -> list[tuple[str, str]]:
    rows = [row["payload"] for row in desk.outbox() if row["event_type"] == "credential.tested"]
    return [(payload["test_id"], payload["outcome"]) for payload in rows]


def test_a_requested_test_says_nothing_else_of_the_credential_and_keeps_what_it_opens(desk, paper, reconcile):
    give_credential(desk, "good")
    reconcile(paper.url)
    logins = desk.rows("broker_login")
    test_id = request_test(desk)

    reconcile(paper.url)

    assert outcomes(desk) == [(str(test_id), "accepted")]
    assert events(desk) == [("credential.tested", 1)], "nothing else is said of it"
    assert desk.rows("broker_login") == logins and desk.rows("balance")


def test_a_requested_test_logs_in_although_it_is_recorded_what_the_credential_opens(desk, paper, reconcile):
    give_credential(desk, "INVALID")
    desk.execute(
        "INSERT INTO intents.broker_login (account_id, credential, broker_account) VALUES (:account_id, :name, 'x')",
        name=f"{uuid5(desk.account_id, 'credential')}:1",
    )
    test_id = request_test(desk)

    with pytest.raises(CredentialRefused):
        reconcile(paper.url)

    assert outcomes(desk) == [(str(test_id), "refused")]


def test_a_requested_test_ends_although_the_broker_is_down(desk, reconcile):
    give_credential(desk, "good")
    test_id = request_test(desk)

    with pytest.raises(Unreachable):
        reconcile("http://127.0.0.1:1")

    assert outcomes(desk) == [(str(test_id), "failed")]


def test_a_requested_test_of_a_credential_that_no_key_opens_keeps_nothing_from_being_read(desk, paper, reconcile):
    give_credential(desk, "good", status="invalid")
    desk.execute("UPDATE accounts.vault_object SET key_id = 'lost' WHERE credential_id IN (SELECT id FROM "
                 "accounts.credential WHERE account_id = :account_id)")  # fmt: skip
    test_id = request_test(desk)

    with pytest.raises(CredentialInvalid):
        reconcile(paper.url)

    assert outcomes(desk) == [(str(test_id), "failed")]


def test_a_credential_that_is_accepted_again_can_be_refused_again(desk, paper, reconcile):
    give_credential(desk, "good")
    reconcile(paper.url)
    [known] = desk.rows("broker_login")
    desk.execute(
        "UPDATE intents.broker_account SET refused_credential = :reference WHERE account_id = :account_id",
        reference=known["credential"],
    )
    request_test(desk)

    reconcile(paper.url)

    assert [row["refused_credential"] for row in desk.rows("broker_account")] == [None]
