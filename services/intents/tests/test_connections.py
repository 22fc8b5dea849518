"""Transactions on prepared connections: what commits, when, and what is refused."""

import pytest

from intents.store.connections import PreparedConnections, Statement
from tip_testing.commands import create

from .conftest import Desk

_NUMBERS = Statement("test_numbers", ("integer",), "SELECT n AS number, n * 2 AS twice FROM generate_series(1, $1) n")
_TOUCH = Statement(
    "test_touch", ("uuid",), "UPDATE intents.intent SET version = 7 WHERE account_id = $1 RETURNING version"
)


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
