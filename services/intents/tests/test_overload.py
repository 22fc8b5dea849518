"""While a backlog is too old, callers' orders are refused with 503 and everything else passes."""

from collections.abc import Callable

import pytest
from werkzeug.test import EnvironBuilder, TestResponse

from chassis.config import BadConfiguration
from intents.config import Config
from intents.store.backlog import BACKLOG
from intents.store.connections import PLAN_BY_KEYS
from intents.usecases.submit import OVERLOADED
from tip_testing.commands import cancel, create, limit, replace

from .broker_side import accepted
from .conftest import Desk
from .serving import send_at_once
from .test_batch import submit as submit_batch
from .test_close_positions import close, hold, until_closing
from .test_submit_fast_path import FLASK

DRY = "?dry_run=true"
PAPER = "paper paper"


def behind(desk: Desk, scope: str | None = None, seconds: float = 60.0) -> None:
    """As the scheduler keeps it; without a scope it is the account's own backlog."""
    desk.execute(
        "INSERT INTO intents.backlog VALUES (:organization_id, :scope, now() + make_interval(secs => :seconds))",
        organization_id=desk.organization.id,
        scope=scope or str(desk.account_id),
        seconds=seconds,
    )


@pytest.fixture
def own_desk(new_desk: Callable[..., Desk]) -> Desk:
    """In an organization of its own: what is behind there is nobody else's."""
    return new_desk()


def assert_overloaded(answer: TestResponse, backlog: str = "account") -> None:
    assert (answer.status_code, answer.json["code"]) == (503, "overloaded"), answer.get_data(as_text=True)
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.content_type == "application/problem+json" and answer.json["backlog"] == backlog


@pytest.mark.parametrize("query", ["", FLASK, DRY])
def test_an_order_is_refused_and_leaves_no_trace(desk: Desk, query: str) -> None:
    behind(desk)

    assert_overloaded(desk.submit(create(), query=query, Idempotency_Key="once"))
    assert desk.rows("action") == desk.outbox() == desk.rows("idempotency") == desk.rows("refusal") == []


@pytest.mark.parametrize("query", ["", FLASK, DRY])
def test_a_replacement_is_refused_and_a_cancel_is_not(desk: Desk, query: str) -> None:
    intent_id = desk.created(limit())["intent_id"]
    accepted(desk, intent_id, "b1")
    behind(desk)

    assert_overloaded(desk.submit(replace(intent_id), query=query))
    assert desk.submit(cancel(intent_id), query=query).status_code == (200 if query == DRY else 201)


def test_reads_pass(desk: Desk) -> None:
    intent_id = desk.created(create())["intent_id"]
    behind(desk)

    assert [desk.get(path).status_code for path in ("", f"/{intent_id}", "/stats", "/verify")] == [200] * 4


def test_a_repeated_request_is_answered_as_before(desk: Desk) -> None:
    first = desk.submit(create(), Idempotency_Key="once")
    behind(desk)

    again = desk.submit(create(), Idempotency_Key="once")

    assert (again.status_code, again.json) == (201, first.json)


def test_only_the_account_that_is_behind_refuses(new_desk: Callable[..., Desk], own_desk: Desk) -> None:
    beside, other_tenant = new_desk(organization=own_desk.organization), new_desk()
    behind(own_desk)

    assert_overloaded(own_desk.submit(create()))
    assert beside.submit(create()).status_code == other_tenant.submit(create()).status_code == 201


def test_an_organization_that_is_behind_at_a_broker_refuses_on_all_accounts_there(
    new_desk: Callable[..., Desk], own_desk: Desk
) -> None:
    beside, other_tenant = new_desk(organization=own_desk.organization), new_desk()
    live = new_desk("live", organization=own_desk.organization)
    behind(own_desk, PAPER)

    assert_overloaded(own_desk.submit(create()), "broker")
    assert_overloaded(beside.submit(create()), "broker")
    assert live.submit(create()).status_code == other_tenant.submit(create()).status_code == 201


def test_orders_that_share_a_transaction_are_refused_each_by_its_own_organization(
    new_desk: Callable[..., Desk], own_desk: Desk
) -> None:
    """There row-level security shows the rows of both."""
    other_tenant = new_desk()
    behind(own_desk, PAPER)
    orders = [EnvironBuilder(desk.path, method="POST", json=create(), headers=desk.headers)
              for desk in (own_desk, other_tenant) * 4]  # fmt: skip

    answers = send_at_once(own_desk.app, orders)

    assert [answer.status_code for answer in answers] == [503, 201] * 4


def test_a_measurement_that_is_old_refuses_nobody(desk: Desk) -> None:
    behind(desk, seconds=-0.1)

    assert desk.submit(create()).status_code == 201


def test_in_a_batch_each_order_is_refused_and_each_cancel_passes(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    behind(desk)

    results = submit_batch(desk, create(), cancel(intent_id), create()).json["results"]

    assert [result["status"] for result in results] == [503, 201, 503]
    assert results[0]["problem"]["code"] == results[2]["problem"]["code"] == "overloaded"


def test_many_orders_of_a_batch_are_refused_by_one_read(desk: Desk, statements: list[str]) -> None:
    """The account's, that of the first order, and that of all others."""
    behind(desk)

    results = submit_batch(desk, *[create() for _ in range(50)]).json["results"]

    assert {result["problem"]["code"] for result in results} == {"overloaded"} and len(results) == 50
    assert statements == ["intents_facts"] * 3


def test_in_a_batch_beside_refused_orders_an_answer_is_repeated_and_what_cannot_be_read_is_named(desk: Desk) -> None:
    commands, key = (create(), create(), create(quantity="0")), {"Idempotency-Key": "once"}
    first = submit_batch(desk, *commands, **key).json["results"]
    forgotten = first[0]["action"]["id"]
    desk.execute("DELETE FROM intents.idempotency WHERE action_id = :forgotten", forgotten=forgotten)
    behind(desk)

    again = submit_batch(desk, *commands, **key).json["results"]

    assert [result["status"] for result in first] == [201, 201, 422]
    assert [result["status"] for result in again] == [503, 201, 422]
    assert again[1]["action"]["id"] == first[1]["action"]["id"]


@pytest.mark.parametrize("query", ["", DRY])
def test_an_atomic_batch_with_an_order_is_refused_as_a_whole(desk: Desk, query: str) -> None:
    intent_id = desk.created(limit())["intent_id"]
    behind(desk)

    assert_overloaded(submit_batch(desk, cancel(intent_id), create(), atomic=True, query=query))
    assert len(desk.rows("action")) == 1


def test_an_atomic_batch_of_cancels_passes(desk: Desk) -> None:
    intents = [desk.created(limit())["intent_id"] for _ in range(2)]
    behind(desk)

    results = submit_batch(desk, *map(cancel, intents), atomic=True).json["results"]

    assert [result["status"] for result in results] == [201, 201]


def test_the_platform_closes_positions_all_the_same(desk: Desk) -> None:
    hold(desk, AAPL=6)
    behind(desk)
    close(desk)

    until_closing(desk)

    assert [row["type"] for row in desk.rows("action")] == ["CREATE"]


def test_refusals_are_counted_by_whose_backlog_it_is(desk: Desk, own_desk: Desk) -> None:
    def counted(backlog: str) -> float:
        value: float = OVERLOADED.labels(backlog)._value.get()
        return value

    before = counted("account"), counted("broker")
    behind(own_desk, PAPER)
    own_desk.submit(create())
    behind(desk)
    submit_batch(desk, create(), create())

    assert (counted("account") - before[0], counted("broker") - before[1]) == (2, 1)


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_a_limit_that_means_nothing_is_refused_at_start(desk: Desk, value: str) -> None:
    with pytest.raises(BadConfiguration, match="BACKLOG_MAX_AGE_SECONDS"):
        Config.from_env(desk.platform.environment("intents", BACKLOG_MAX_AGE_SECONDS=value))


def test_a_submit_is_still_one_read_and_one_write(desk: Desk, statements: list[str]) -> None:
    desk.created(create())

    assert statements == ["intents_facts", "intents_create"]


def test_backlogs_are_found_by_key(desk: Desk) -> None:
    """As the prepared statements of a submit are planned."""
    with desk.app.extensions["deps"].engine.begin() as tx:
        tx.exec_driver_sql(PLAN_BY_KEYS.replace("SET ", "SET LOCAL "))
        found = f"EXPLAIN SELECT {BACKLOG} FROM accounts_api.account a WHERE a.id = '{desk.account_id}'"
        plan = "\n".join(tx.exec_driver_sql(found).scalars())

    assert "using backlog_pkey" in plan and "Seq Scan" not in plan
