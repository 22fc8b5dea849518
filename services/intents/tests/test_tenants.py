"""Postgres as a second wall: what a query of the web process forgets, row-level security remembers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import psycopg2
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import ProgrammingError
from werkzeug.test import EnvironBuilder

from chassis import tenancy
from intents.store.statement import Statement
from tip_testing.commands import cancel, create
from tip_testing.forgetting import forgetting
from tip_testing.platform_plugin import Platform

from .conftest import Desk
from .serving import send_at_once

# With a column of its own, and with something in it after `both`.
TABLES = (
    *("account_event", "account_head", "action", "bulk_operation", "idempotency", "intent", "intent_tag"),
    *("backlog", "order_total", "position", "refusal", "statistic"),
)


@pytest.fixture
def both(new_desk: Callable[..., Desk]) -> tuple[Desk, Desk]:
    """Two organizations with something in every table."""
    desks = new_desk(), new_desk()
    for desk in desks:
        desk.submit(create(), Idempotency_Key="once")
        desk.client.post(f"{desk.path}/cancel", headers=desk.headers)
        values = {"organization_id": desk.organization.id, "id": uuid4()}
        desk.execute("INSERT INTO intents.position (account_id, symbol, quantity, updated_at) "
                     "VALUES (:account_id, 'AAPL', 1, now())")  # fmt: skip
        desk.execute("INSERT INTO intents.account_event (account_id, sequence, id, type, payload, occurred_at) "
                     "VALUES (:account_id, 1000000, :id, 'ACCOUNT', '{}', now())", **values)  # fmt: skip
        desk.execute("INSERT INTO intents.refusal (account_id, id, organization_id, type, symbol, actor_type, "
                     "actor_id, reasons, created_at) VALUES (:account_id, :id, :organization_id, 'CREATE', 'AAPL', "
                     "'api_key', 'x', '[]', now())", **values)  # fmt: skip
        desk.execute("INSERT INTO intents.intent_tag (account_id, organization_id, tag, created_at, intent_id) "
                     "VALUES (:account_id, :organization_id, 'x', now(), :id)", **values)  # fmt: skip
        desk.execute("INSERT INTO intents.backlog VALUES (:organization_id, 'x', now())", **values)
        desk.execute("INSERT INTO intents.statistic (account_id, width, bucket, kind, key, amount) "
                     "VALUES (:account_id, 'day', now(), 'type', 'CREATE', 1)")  # fmt: skip
    return desks


@pytest.fixture
def engine(desk: Desk) -> Engine:
    """The web process's own."""
    found: Engine = desk.app.extensions["deps"].engine
    return found


@contextmanager
def without_row_level_security(desk: Desk, *tables: str) -> Iterator[None]:
    for table in tables:
        desk.execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
    try:
        yield
    finally:
        for table in tables:
            desk.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")


def accounts_in(answer: Any) -> set[str]:
    assert answer.status_code == 200
    return {action["account_id"] for action in answer.json["data"]}


def test_a_list_that_forgets_the_account_shows_nothing_of_another_organization(
    both: tuple[Desk, Desk], engine: Engine
) -> None:
    ours, theirs = both
    with forgetting(engine, "a.account_id = %(account_id)s") as forgotten:
        seen = accounts_in(ours.get())
        with without_row_level_security(ours, "intents.action", "intents.intent"):
            leaked = accounts_in(ours.get())

    assert forgotten
    assert seen == {str(ours.account_id)}
    assert str(theirs.account_id) in leaked  # so it was row-level security that kept it


def test_an_account_that_is_not_checked_for_its_owner_is_not_found_all_the_same(
    both: tuple[Desk, Desk], engine: Engine
) -> None:
    ours, theirs = both
    with forgetting(engine, "WHERE id = %(account_id)s", f"WHERE id = '{theirs.account_id}'") as forgotten:
        answer = ours.get()

    assert forgotten and answer.status_code == 404


@pytest.mark.parametrize("table", TABLES)
def test_the_web_process_sees_rows_of_whom_it_serves_and_of_nobody_else(
    both: tuple[Desk, Desk], engine: Engine, table: str
) -> None:
    ours, theirs = both
    found = text(f"SELECT DISTINCT organization_id FROM intents.{table}")
    seen = {}
    for name, served in {"ours": [ours], "both": [ours, theirs], "nobody": []}.items():
        with tenancy.serving(desk.organization.id for desk in served), engine.connect() as tx:
            seen[name] = set(tx.execute(found).scalars())

    of_both = {ours.organization.id, theirs.organization.id}
    assert seen == {"ours": {ours.organization.id}, "both": of_both, "nobody": set()}


@pytest.mark.parametrize("table", ["broker_order", "broker_login", "outbox"])
def test_the_web_process_reads_nothing_that_it_does_not_show(engine: Engine, table: str) -> None:
    with engine.connect() as tx, pytest.raises(ProgrammingError, match="permission denied"):
        tx.execute(text(f"SELECT count(*) FROM intents.{table}"))


@pytest.mark.parametrize("serves", [True, False], ids=["another", "nobody"])
def test_the_web_process_writes_nothing_of_whom_it_does_not_serve(
    both: tuple[Desk, Desk], engine: Engine, serves: bool
) -> None:
    ours, theirs = both
    queue = text(
        "INSERT INTO intents.outbox (event_id, event_type, payload) "
        "SELECT gen_random_uuid(), 'x', jsonb_build_object('organization_id', CAST(:id AS text))"
    )
    raise_head = text("UPDATE intents.account_head SET last_sequence = 7 WHERE account_id = :id")
    before = theirs.rows("account_head")

    with tenancy.serving([ours.organization.id] if serves else []):
        with engine.begin() as tx:
            assert tx.execute(raise_head, {"id": theirs.account_id}).rowcount == 0
        with engine.begin() as tx, pytest.raises(ProgrammingError, match="row-level security"):
            tx.execute(queue, {"id": str(theirs.organization.id)})

    assert theirs.rows("account_head") == before


def test_whom_a_transaction_serves_is_forgotten_with_it(both: tuple[Desk, Desk], engine: Engine) -> None:
    count, ours = text("SELECT count(*) FROM intents.action"), both[0]
    with engine.connect() as connection:
        with tenancy.serving([ours.organization.id]):
            served = connection.execute(count).scalar_one()
            connection.rollback()
        after = connection.execute(count).scalar_one()

    assert (served > 0, after) == (True, 0)


@contextmanager
def forgetting_prepared(desk: Desk, condition: str) -> Iterator[list[Any]]:
    """The submit path's prepared statements lose the condition; the rows that those which did have read."""
    connections = desk.app.extensions["deps"].connections
    read: list[Any] = []
    execute, suffix = connections._execute, uuid4().hex  # a connection prepares a name once

    def forgetful(statement: Statement, *arguments: Any) -> Any:
        if condition not in statement.sql:
            return execute(statement, *arguments)
        changed = statement._replace(name=f"{statement.name}_{suffix}", sql=statement.sql.replace(condition, "true"))
        rows = execute(changed, *arguments)
        read.extend(rows)
        return rows

    connections._execute = forgetful
    try:
        yield read
    finally:
        connections._execute = execute


@pytest.mark.parametrize("path", ["", "?dry_run=false"], ids=["fast path", "Flask"])
@pytest.mark.parametrize(
    ("condition", "tables"),
    [
        ("a.id = query.account_id", ["accounts.account"]),
        ("k.prefix = query.prefix", ["identity.api_key", "identity.organization"]),
    ],
    ids=["account", "key"],
)
def test_the_submit_path_sees_only_whom_the_presented_keys_belong_to(
    new_desk: Callable[..., Desk], condition: str, tables: list[str], path: str
) -> None:
    ours, theirs = new_desk(), new_desk()

    def organizations_read() -> set[UUID]:
        with forgetting_prepared(ours, condition) as rows:
            ours.client.post(ours.path + path, json=create(), headers=ours.headers)
        found = {value for row in rows for value in row if isinstance(value, UUID)}
        return found & {ours.organization.id, theirs.organization.id}

    seen = organizations_read()
    with without_row_level_security(ours, *tables):
        leaked = organizations_read()

    assert seen == {ours.organization.id}
    assert theirs.organization.id in leaked  # so it was row-level security that kept it


def test_an_account_of_another_organization_cannot_be_traded_on(both: tuple[Desk, Desk]) -> None:
    ours, theirs = both

    assert ours.client.post(theirs.path, json=create(), headers=ours.headers).status_code == 404
    assert len(theirs.rows("action")) == 1


def test_orders_of_several_organizations_are_still_written_in_one_batch(both: tuple[Desk, Desk]) -> None:
    requests = [
        EnvironBuilder(desk.path, method="POST", json=create(), headers=desk.headers) for desk in both for _ in range(4)
    ]

    answers = send_at_once(both[0].app, requests)

    assert {answer.status_code for answer in answers} == {201}
    for desk in both:
        assert {row["organization_id"] for row in desk.rows("action")} == {desk.organization.id}
        assert len(desk.rows("action")) == 5


def test_an_intent_of_another_organization_cannot_be_canceled_through_an_own_account(both: tuple[Desk, Desk]) -> None:
    ours, theirs = both
    [foreign] = theirs.rows("intent")

    assert ours.submit(cancel(foreign["id"])).status_code == 404
    assert len(theirs.rows("action")) == 1


def test_a_key_that_nobody_has_opens_nothing(platform: Platform) -> None:
    connection = psycopg2.connect(platform.database_url("intents_web"))
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT identity_api.organizations_of_keys(ARRAY['\\x00'::bytea])")
            assert cursor.fetchone() == ("{}",)
            cursor.execute("SELECT count(*) FROM identity_api.usable_api_key")
            assert cursor.fetchone() == (0,)
    finally:
        connection.close()
