"""What limits read: what is held or open now and a few orders, whatever the account has traded before."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from chassis import tenancy
from intents.store import order_facts, quotes
from intents.store.connections import PLAN_BY_KEYS
from intents.store.statement import Statement

from .conftest import Desk

CLOSED = 20_000
_READ = text("""
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables
    WHERE schemaname = 'intents' AND relname IN ('position', 'order_total', 'quote')
""")
_ORDER_FACTS = text("""
    SELECT other_exposure
    FROM intents_api.order_facts(:id, 'AAPL', 'BUY', NULL, NULL, interval '1 minute', with_exposure => true)
""")
# Of two days ago. With other accounts' orders, so few of this one's are expected that sorting them would seem cheap.
_OF_OTHERS = """
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
        previous_hash, hash, created_at, account_orders, symbol_orders)
    SELECT gen_random_uuid(), 1, gen_random_uuid(), :id, 'live', gen_random_uuid(), 'CREATE', '{}', 'AAPL', 'BUY',
        '{}', 'AUTO', 'api_key', 'x', '{}', 'PENDING', now(), '', '', now(), 1, 1 FROM generate_series(1, 3000) n
    WHERE CAST(:account_id AS uuid) IS NOT NULL
"""
_OLD_ORDERS = f"""
    WITH old AS (
        SELECT n, now() - interval '2 days' + interval '1 us' * n AS moment FROM generate_series(1, {CLOSED}) n
    ), written AS (
        INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
            symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
            previous_hash, hash, created_at, account_orders, symbol_orders)
        SELECT :account_id, n, gen_random_uuid(), :id, 'live', gen_random_uuid(), 'CREATE', '{{}}', 'AAPL', 'BUY',
            '{{}}', 'AUTO', 'api_key', 'x', '{{}}', 'PENDING', moment, '', '', moment, n, n FROM old
    )
    INSERT INTO intents.order_total (account_id, organization_id, symbol, orders, open_orders, open_buy_quantity,
        open_sell_quantity) SELECT :account_id, :id, symbol, {CLOSED}, 0, 0, 0 FROM unnest(ARRAY['', 'AAPL']) symbol
"""
_ROWS_READ = Statement(
    "test_rows_read",
    ("text",),
    "SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) AS rows FROM pg_stat_xact_user_tables "
    "WHERE schemaname = 'intents' AND relname = $1",
)


@pytest.fixture
def traded(desk: Desk) -> Desk:
    """An account that has closed many symbols, holds one and has an order open for another."""
    symbols = f"(SELECT 'C' || n AS symbol, 0 AS quantity FROM generate_series(1, {CLOSED}) n UNION ALL VALUES "
    desk.execute(
        "INSERT INTO intents.position (account_id, organization_id, symbol, quantity, last_price, price_at, "
        "price_source, updated_at) SELECT :account_id, :id, symbol, quantity, 5, now(), 'fill', now() "
        f"FROM {symbols} ('HELD', -3)) s",
        id=desk.organization.id,
    )
    desk.execute(
        "INSERT INTO intents.order_total (account_id, organization_id, symbol, orders, open_orders, open_buy_quantity, "
        "open_sell_quantity) SELECT :account_id, :id, symbol, 1, 0, quantity, 0 "
        f"FROM {symbols} ('OPEN', 2), ('', 0)) s",
        id=desk.organization.id,
    )
    desk.execute(
        "INSERT INTO intents.quote (account_id, organization_id, symbol, last, traded_at, read_at) "
        "VALUES (:account_id, :id, 'OPEN', 10, now(), now() - interval '1 hour')",
        id=desk.organization.id,
    )
    desk.execute("ANALYZE intents.position, intents.order_total, intents.quote")
    return desk


@contextmanager
def serving(desk: Desk) -> Iterator[Connection]:
    """A transaction of a web process that serves the organization."""
    with tenancy.serving([desk.organization.id]), desk.app.extensions["deps"].engine.begin() as tx:
        yield tx


def rows_read(tx: Connection) -> int:
    return int(tx.execute(_READ).scalar_one())


def test_the_exposure_in_other_symbols_reads_what_is_held_or_open(traded: Desk) -> None:
    account: dict[str, Any] = {"id": traded.account_id}
    with serving(traded) as tx:
        tx.execute(text(PLAN_BY_KEYS))
        found = tx.execute(_ORDER_FACTS, account).scalar_one()

        assert found == 3 * 5 + 2 * 10
        assert rows_read(tx) < 20


def test_finding_prices_that_are_missing_reads_what_is_held_or_open(traded: Desk) -> None:
    with serving(traded) as tx:
        missing = quotes.unpriced_symbols(
            tx, traded.account_id, ["AAPL"], timedelta(minutes=1), 5.0, with_exposure=True
        )

        assert missing == ["AAPL"]
        assert rows_read(tx) < 20


def test_counting_orders_reads_few_also_by_a_plan_that_was_made_when_there_were_none(desk: Desk) -> None:
    query = ([str(desk.account_id)], ["AAPL"], ["BUY"], [None], [True], timedelta(minutes=1))
    connections = desk.app.extensions["deps"].connections
    desk.execute(_OF_OTHERS, id=desk.organization.id)
    with tenancy.serving([desk.organization.id]):
        with connections.begin() as tx:
            tx.read(order_facts.ORDER_FACTS, query)
        desk.execute(_OLD_ORDERS, id=desk.organization.id)
        with connections.begin() as tx:
            [found] = tx.read(order_facts.ORDER_FACTS, query)
            [read] = tx.read(_ROWS_READ, ("action",))

    assert found.account_orders_last_day == found.symbol_orders_last_minute == 0
    assert read.rows < 20
