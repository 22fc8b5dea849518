"""Transactions on prepared connections: what commits, when, and what is refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import exc

from chassis import db
from intents.store.connections import CommitOutcomeUnknown, PreparedConnections
from intents.store.statement import Statement
from tip_testing.commands import create

from .conftest import Desk

_NUMBERS = Statement("test_numbers", ("integer",), "SELECT n AS number, n * 2 AS twice FROM generate_series(1, $1) n")
_TOUCH = Statement(
    "test_touch", ("uuid",), "UPDATE intents.intent SET version = 7 WHERE account_id = $1 RETURNING version"
)

_VERSION = Statement("test_version", ("uuid",), "SELECT version FROM intents.intent WHERE account_id = $1")
_MOMENT = Statement("test_moment", ("integer",), "SELECT now() AS moment FROM generate_series(1, $1)")
_BACKEND = Statement("test_backend", ("integer",), "SELECT pg_backend_pid() AS pid FROM generate_series(1, $1)")
_SLOW_BACKEND = Statement(
    "test_slow_backend", ("integer",), "SELECT pg_backend_pid() AS pid FROM generate_series(1, $1), pg_sleep(0.05)"
)
_END = Statement("test_end", ("integer",), "SELECT pg_terminate_backend(pg_backend_pid()) FROM generate_series(1, $1)")
_FAIL = Statement("test_fail", ("integer",), "SELECT 1 / $1")


@pytest.fixture
def connections(desk: Desk) -> PreparedConnections:
    return desk.deps.connections


def test_rows_have_the_names_of_their_columns(connections: PreparedConnections) -> None:
    rows = connections.autocommit().read(_NUMBERS, (2,))

    assert [(row.number, row.twice) for row in rows] == [(1, 2), (2, 4)]


def test_an_open_transaction_is_passed_on_and_never_joined_unseen(connections: PreparedConnections) -> None:
    beside = connections.autocommit()
    with connections.begin() as tx:
        with pytest.raises(RuntimeError, match="open transaction"):
            beside.read(_NUMBERS, (1,))
        with pytest.raises(RuntimeError, match="open transaction"), connections.begin():
            pass
        assert len(tx.read(_NUMBERS, (3,))) == 3

    assert len(beside.read(_NUMBERS, (1,))) == 1


def test_a_transaction_that_raises_leaves_nothing(desk: Desk, connections: PreparedConnections) -> None:
    desk.created(create())

    def touch_and_fail() -> None:
        with connections.begin() as tx:
            assert [row.version for row in tx.write(_TOUCH, (str(desk.account_id),))] == [7]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        touch_and_fail()

    assert [row["version"] for row in desk.rows("intent")] != [7]


def test_a_statement_outside_a_transaction_commits_by_itself(desk: Desk, connections: PreparedConnections) -> None:
    desk.created(create())

    connections.autocommit().write(_TOUCH, (str(desk.account_id),))

    assert [row["version"] for row in desk.rows("intent")] == [7]


def test_a_transaction_begins_with_its_first_statement(connections: PreparedConnections) -> None:
    with connections.begin():
        pass

    with connections.begin() as tx:
        [first] = tx.read(_MOMENT, (1,))
        [second] = tx.read(_MOMENT, (1,))
    [later] = connections.autocommit().read(_MOMENT, (1,))

    assert first.moment == second.moment < later.moment


def test_a_connection_that_was_lost_before_a_transaction_is_replaced(
    desk: Desk, connections: PreparedConnections
) -> None:
    [row] = connections.autocommit().read(_BACKEND, (1,))
    with connections.begin() as tx:
        with desk.platform.admin() as admin:
            admin.exec_driver_sql(f"SELECT pg_terminate_backend({row.pid}, 5000)")
        [other] = tx.read(_BACKEND, (1,))

    assert other.pid != row.pid


def test_a_statement_may_run_after_another_in_one_round_trip(desk: Desk, connections: PreparedConnections) -> None:
    desk.created(create())

    with connections.begin() as tx:
        [row] = tx.write_after(_TOUCH, _VERSION, (str(desk.account_id),))

    assert row.version == 7


def test_the_last_statement_is_committed_before_the_process_goes_on(
    desk: Desk, connections: PreparedConnections
) -> None:
    desk.created(create())
    account = (str(desk.account_id),)

    with connections.begin() as tx:
        tx.read(_VERSION, account)
        [row] = tx.write_last(_TOUCH, account, _VERSION, account)
        versions_meanwhile = [row["version"] for row in desk.rows("intent")]

    assert versions_meanwhile == [row.version] == [7]
    assert connections.autocommit().read(_VERSION, account) == [row]


def test_a_last_statement_that_fails_takes_the_others_with_it(desk: Desk, connections: PreparedConnections) -> None:
    desk.created(create())
    account = (str(desk.account_id),)

    def touch_and_fail() -> None:
        with connections.begin() as tx:
            tx.write(_TOUCH, account)
            tx.write_last(_FAIL, (0,), _VERSION, account)

    with pytest.raises(exc.DataError):
        touch_and_fail()

    assert [row["version"] for row in desk.rows("intent")] != [7]
    assert len(connections.autocommit().read(_VERSION, account)) == 1


def test_nobody_knows_what_became_of_a_last_statement_that_was_not_answered(connections: PreparedConnections) -> None:
    with pytest.raises(CommitOutcomeUnknown), connections.begin() as tx:
        tx.write_last(_END, (1,), _NUMBERS, (1,))

    assert len(connections.autocommit().read(_NUMBERS, (1,))) == 1


def test_threads_share_a_few_connections(desk: Desk) -> None:
    """An executor has dozens of threads, and all processes together may not hold more than the server allows."""
    shared = PreparedConnections(desk.deps.engine, most=3)
    pids = set()

    def read(_number: int) -> None:
        pids.add(shared.autocommit().read(_SLOW_BACKEND, (1,))[0].pid)
        with shared.begin() as tx:
            pids.update(row.pid for row in tx.read(_BACKEND, (1,)))

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(read, range(48)))

    assert len(pids) == 3


def test_who_finds_all_connections_in_use_does_not_wait_for_ever(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(db, "POOL_TIMEOUT_S", 0.05)
    shared = PreparedConnections(desk.deps.engine, most=1)

    with ThreadPoolExecutor(1) as other, shared.begin() as tx:
        assert tx.read(_NUMBERS, (1,))
        waiting = other.submit(lambda: shared.autocommit().read(_NUMBERS, (1,)))
        with pytest.raises(exc.TimeoutError) as refused:
            waiting.result()

    assert db.is_unavailable(refused.value)
    assert shared.autocommit().read(_NUMBERS, (1,))
