"""A credential is tested by its broker before anything is done with it, and what it opens is read at once."""

from typing import Any

import pytest

from credential_vault import Keyring
from intents.execution import recorder
from intents.execution.credentials import CredentialPending, Credentials, report_accepted, report_refused
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.watches import Watch
from tip_brokers import Brokers, Unreachable

from .conftest import PAPER_SECRET, give_credential
from .paper_connections import at


@pytest.fixture
def reconcile(desk: Any) -> Any:
    """Reads the desk's account once, as a reconciler does."""

    def run(url: str) -> None:
        deps = desk.deps
        credentials = Credentials(deps.engine, PAPER_SECRET, Keyring.from_text(desk.platform.vault_key))
        records = recorder.Recorder(deps.connections)
        made = Reconciler(deps.engine, Brokers(at(url)), credentials, records, 5.0, streams=0)
        made.on_accepted = lambda account_id, pair: report_accepted(deps.outbox, account_id, pair)
        made.on_refused = lambda account_id, pair: report_refused(deps.outbox, account_id, pair)
        made.__post_init__()
        made._found(Watch(WatchedAccount(desk.account_id, desk.organization.id, "paper", "paper", False, False)))

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


def test_a_broker_that_is_down_leaves_a_credential_pending(desk, reconcile):
    give_credential(desk, "good", status="pending")

    with pytest.raises(Unreachable):
        reconcile("http://127.0.0.1:1")

    assert events(desk) == []


def test_a_credential_whose_newest_secret_is_not_in_the_vault_is_not_tested(desk, paper, reconcile):
    give_credential(desk, "good", status="pending")
    desk.execute("UPDATE accounts.credential SET version = 2 WHERE account_id = :account_id")

    with pytest.raises(CredentialPending):
        reconcile(paper.url)

    assert events(desk) == []
