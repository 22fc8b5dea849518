"""What a limit of the exposure reads: what is held or open now, whatever the account has traded before."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from chassis import tenancy
from intents.store import quotes

from .conftest import Desk

CLOSED = 20_000
_READ = text("""
    SELECT coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables
    WHERE schemaname = 'intents' AND relname IN ('position', 'order_total', 'quote')
""")


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
        found = tx.execute(
            text("SELECT intents_api.other_exposure(:id, 'AAPL', now() - interval '1 minute')"), account
        ).scalar_one()

        assert found == 3 * 5 + 2 * 10
        assert rows_read(tx) < 20


def test_finding_prices_that_are_missing_reads_what_is_held_or_open(traded: Desk) -> None:
    with serving(traded) as tx:
        missing = quotes.unpriced_symbols(
            tx, traded.account_id, ["AAPL"], timedelta(minutes=1), 5.0, with_exposure=True
        )

        assert missing == ["AAPL"]
        assert rows_read(tx) < 20
