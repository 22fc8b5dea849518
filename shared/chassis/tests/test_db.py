"""Connections to the database: what a read costs, whom it serves, and what happens when the server ends one."""

import select
from collections.abc import Iterator
from contextlib import closing
from uuid import uuid4

import psycopg2
import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from chassis import db, tenancy
from tip_testing.platform_plugin import Platform

SERVED = text("SELECT current_setting('tip.organizations', true)")
BACKEND = text("SELECT pg_backend_pid()")


@pytest.fixture
def engine(platform: Platform) -> Iterator[Engine]:
    made = db.engine(platform.database_url("identity"), pool_size=2, name="test_db")
    yield made
    made.dispose()


def in_a_transaction(connection: Connection) -> bool:
    driver = connection.connection.driver_connection
    assert driver is not None
    return bool(driver.info.transaction_status)


def end(platform: Platform, backend: int) -> None:
    """As an administrator does, or a server that stops; returns when it has ended."""
    with platform.admin() as admin:
        admin.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": backend})


def test_a_read_leaves_no_transaction_open(engine: Engine) -> None:
    with db.reading(engine) as tx:
        tx.execute(BACKEND)
        assert not in_a_transaction(tx)
    with engine.begin() as tx:
        tx.execute(BACKEND)
        assert in_a_transaction(tx)


def test_every_read_says_whom_it_serves(engine: Engine) -> None:
    organization = uuid4()
    with tenancy.serving([organization]), db.reading(engine) as tx:
        assert [tx.execute(SERVED).scalar_one() for _ in range(3)] == [f"{{{organization}}}"] * 3
    with tenancy.serving([]), db.reading(engine) as tx:
        assert not tx.execute(SERVED).scalar_one()


def test_a_transaction_after_a_read_serves_its_own_organization_to_its_end(engine: Engine) -> None:
    first, second = uuid4(), uuid4()
    with tenancy.serving([first]), db.reading(engine) as tx:
        tx.execute(SERVED)
    with tenancy.serving([second]), engine.begin() as tx:
        assert [tx.execute(SERVED).scalar_one() for _ in range(2)] == [f"{{{second}}}"] * 2


def test_a_connection_that_the_server_ended_is_replaced_unnoticed(engine: Engine, platform: Platform) -> None:
    with db.reading(engine) as tx:
        before = tx.execute(BACKEND).scalar_one()
    end(platform, before)

    with engine.begin() as tx:
        assert tx.execute(BACKEND).scalar_one() != before


def test_a_read_whose_connection_ends_after_its_answer_has_succeeded(engine: Engine, platform: Platform) -> None:
    for _ in range(3):
        with db.reading(engine) as tx:
            before = tx.execute(BACKEND).scalar_one()
            end(platform, before)
    with engine.begin() as tx:
        assert tx.execute(BACKEND).scalar_one() != before


def test_a_read_whose_connection_ends_before_its_statement_is_an_outage_and_the_next_is_none(
    engine: Engine, platform: Platform
) -> None:
    def read_by_an_ended_connection() -> None:
        with db.reading(engine) as tx:
            ended.append(tx.execute(BACKEND).scalar_one())
            end(platform, ended[0])
            tx.execute(BACKEND)

    ended: list[int] = []
    with pytest.raises(OperationalError) as outage:
        read_by_an_ended_connection()

    assert db.is_unavailable(outage.value)
    with db.reading(engine) as tx:
        assert tx.execute(BACKEND).scalar_one() not in ended


def test_the_log_says_why_the_database_was_unavailable(engine: Engine) -> None:
    nowhere = db.engine("postgresql://tip@127.0.0.1:1/tip", pool_size=1, name="test_db")

    with pytest.raises(OperationalError) as too_slow, engine.begin() as tx:
        tx.execute(text("SET LOCAL statement_timeout = 1; SELECT pg_sleep(10)"))
    with pytest.raises(OperationalError) as unreachable, nowhere.begin() as tx:
        tx.execute(BACKEND)

    assert db.is_unavailable(too_slow.value) and db.is_unavailable(unreachable.value)
    assert db.log_fields(too_slow.value)["sqlstate"] == "57014"
    assert db.log_fields(unreachable.value) == {"error": "OperationalError", "sqlstate": None}


def test_a_connection_on_which_something_unsolicited_waits_is_kept(platform: Platform) -> None:
    """A notification stands for all that Postgres sends unasked, such as a setting that has changed."""
    with closing(psycopg2.connect(platform.admin_url)) as connection, platform.admin() as admin:
        connection.autocommit = True
        connection.cursor().execute("LISTEN test_db")
        assert not db.closed_by_server(connection)
        admin.execute(text("NOTIFY test_db"))

        assert select.select([connection], [], [], 10)[0]
        assert not db.closed_by_server(connection)
        end(platform, connection.info.backend_pid)
        assert db.closed_by_server(connection)
