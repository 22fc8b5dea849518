"""What counts as waiting: what is due, nobody has taken and nobody has begun; and what is kept of it for submits."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text
from structlog.testing import capture_logs

from chassis import db
from intents.execution import store
from intents.execution.backlog import BacklogMonitor
from intents.execution.metrics import BACKLOG_SECONDS, BROKER_BACKLOG_SECONDS, OVERLOADS
from intents.execution.model.backlog import WaitingAccount
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.verdicts import RetryLater, Unknown, Verdict
from intents.execution.recorder import record
from tip_testing.commands import cancel, create, limit, replace

from ..broker_side import accept
from ..conftest import Desk

LEASE_SECONDS = 600.0
LIMIT = 10.0


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    return new_desk()


@pytest.fixture(autouse=True)
def nothing_due(desk: Desk) -> None:
    """What other tests have left is out of the way."""
    desk.execute("UPDATE intents.intent SET open_actions = 0, lease_until = NULL")
    desk.execute("DELETE FROM intents.backlog")


def due_for(desk: Desk, seconds: float) -> None:
    """Let all that is due on the desk have been so for longer."""
    desk.execute(
        "UPDATE intents.intent SET next_attempt_at = next_attempt_at - make_interval(secs => :seconds) "
        "WHERE account_id = :account_id",
        seconds=seconds,
    )


def waiting(desk: Desk) -> list[WaitingAccount]:
    with db.reading(desk.deps.engine) as tx:
        return [account for account in store.waiting_accounts(tx) if account.account_id == desk.account_id]


def claim(desk: Desk) -> Any:
    return store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS)


def settle(desk: Desk, verdict: Verdict) -> None:
    record(desk.deps.connections, [DispatchResult(command, verdict) for command in claim(desk)])


def kept(desk: Desk) -> set[str]:
    found = desk.execute("SELECT scope FROM intents.backlog WHERE expires_at > now()")
    return set(found.scalars())


def test_an_order_waits_from_its_submit_until_it_is_claimed(desk: Desk) -> None:
    desk.created(create())
    due_for(desk, 20)
    desk.created(create())

    [account] = waiting(desk)
    claim(desk)

    assert (account.broker, account.environment, account.in_flight) == ("paper", "paper", False)
    assert account.organization_id == desk.organization.id and 20 <= account.age_seconds < 60
    assert waiting(desk) == []


def test_a_replacement_and_a_cancel_wait_too(desk: Desk) -> None:
    for change in (replace, cancel):
        intent_id = desk.created(limit())["intent_id"]
        accept(desk, intent_id, f"b-{intent_id}")
        assert waiting(desk) == []
        desk.created(change(intent_id))
        assert len(waiting(desk)) == 1
        claim(desk)


@pytest.mark.parametrize(
    "verdict",
    [
        RetryLater(2.0, "none", "CREDENTIAL_MISSING"),
        RetryLater(1.0, "rate_limited"),
        RetryLater(300.0, "circuit_open", waiting_since=datetime.now(UTC)),
        RetryLater(1.0, "none", "REFERENCE_PRICE_UNKNOWN"),
    ],
)
def test_what_an_executor_has_put_back_waits_for_its_own_reason(desk: Desk, verdict: RetryLater) -> None:
    desk.created(create())
    due_for(desk, 3600)
    settle(desk, verdict)

    assert waiting(desk) == []


def test_what_was_put_back_counts_from_when_it_is_due_again(desk: Desk) -> None:
    desk.created(create())
    due_for(desk, 3600)
    settle(desk, RetryLater(2.0, "none", "CREDENTIAL_MISSING"))
    due_for(desk, 5)

    [account] = waiting(desk)

    assert 2 < account.age_seconds < 30


def test_what_may_have_been_sent_is_not_waiting_however_long_it_takes(desk: Desk) -> None:
    desk.created(create(symbol="SIM.TIMEOUT_AFTER_ACCEPT"))
    settle(desk, Unknown("timeout"))
    due_for(desk, 3600)

    assert waiting(desk) == []


def test_an_account_with_commands_under_way_waits_for_itself(desk: Desk) -> None:
    desk.created(create())
    claim(desk)
    desk.created(create())

    assert [account.in_flight for account in waiting(desk)] == [True]


def test_a_long_line_of_one_organization_hides_no_other(desk: Desk, new_desk: Callable[..., Desk], monkeypatch) -> None:
    monkeypatch.setattr(store.backlog, "MOST_OF_A_QUEUE", 2)
    loud = new_desk()
    for _ in range(4):
        loud.created(create())
    desk.created(create())

    assert len(waiting(loud)) == len(waiting(desk)) == 1


def test_the_monitor_keeps_who_is_behind_and_forgets_who_has_recovered(
    desk: Desk, new_desk: Callable[..., Desk]
) -> None:
    beside, other_tenant = new_desk(organization=desk.organization), new_desk()
    monitor = BacklogMonitor(desk.deps, LIMIT)
    for each in (desk, beside, other_tenant):
        each.created(create())
    for each in (desk, beside):
        due_for(each, 20)

    with capture_logs() as lines:
        for _ in range(2):
            monitor.measure()
    assert [line["event"] for line in lines] == ["overload_began"]
    assert kept(desk) == {str(desk.account_id), str(beside.account_id), "paper paper"}
    assert [each.submit(create()).status_code for each in (desk, beside, other_tenant)] == [503, 503, 201]

    claim(desk)
    monitor.measure()
    assert kept(desk) == set()
    assert desk.submit(create()).status_code == 201


def test_while_nobody_is_behind_nothing_is_written(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    monitor = BacklogMonitor(desk.deps, LIMIT)
    monitor.measure()
    desk.execute(
        "INSERT INTO intents.backlog VALUES (:organization_id, 'another''s', now() + interval '1 minute')",
        organization_id=desk.organization.id,
    )

    monitor.measure()

    assert kept(desk) == {"another's"}


def test_what_a_scheduler_left_behind_when_it_died_is_forgotten_by_the_next(desk: Desk) -> None:
    desk.created(create())
    due_for(desk, 20)
    BacklogMonitor(desk.deps, LIMIT).measure()
    claim(desk)

    BacklogMonitor(desk.deps, LIMIT).measure()

    assert kept(desk) == set()


def test_a_limit_of_zero_refuses_nobody_and_measures_all_the_same(desk: Desk) -> None:
    desk.created(create())
    due_for(desk, 20)

    BacklogMonitor(desk.deps, 0).measure()

    assert kept(desk) == set() and BACKLOG_SECONDS._value.get() >= 20


def test_the_age_is_a_metric_of_the_platform_and_of_each_broker(desk: Desk) -> None:
    monitor, broker = BacklogMonitor(desk.deps, LIMIT), BROKER_BACKLOG_SECONDS.labels("paper", "paper")
    desk.created(create())
    due_for(desk, 20)
    monitor.measure()
    shown = [gauge._value.get() for gauge in (BACKLOG_SECONDS, broker, OVERLOADS)]
    claim(desk)
    monitor.measure()

    assert 20 <= shown[0] == shown[1] < 60 and shown[2] == 1
    assert [gauge._value.get() for gauge in (BACKLOG_SECONDS, broker, OVERLOADS)] == [0, 0, 0]


def test_measuring_goes_through_no_table(desk: Desk) -> None:
    """A platform at rest has many intents and hardly one with work left."""
    desk.execute("ANALYZE intents.intent")
    with db.reading(desk.deps.engine) as tx:
        tx.execute(text("SET enable_seqscan = off"))
        plan = "\n".join(tx.execute(text(f"EXPLAIN {store.backlog._WAITING.text}"), {"most": 1}).scalars())
        tx.execute(text("RESET enable_seqscan"))

    assert "intent_work_idx" in plan and "intent_lease_idx" in plan and "Seq Scan" not in plan
