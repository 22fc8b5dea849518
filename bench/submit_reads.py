"""Reading the log at depth: `python -m bench.submit_reads [millions]`, five by default.

Pages: the page after the millionth action against the first page. Orders: a page of open ones beside all the others
that have ended, against the same beside five thousand. Statistics: the whole log of an account from the
buckets against counting it naively. Both through the store, so that neither HTTP nor JSON blurs the picture.
"""

import statistics
import sys
import time
from collections.abc import Callable
from uuid import UUID, uuid4

from sqlalchemy import Connection, create_engine, text

from bench.harness import Ratio, report
from bench.submit_stage import Stage, stage
from chassis import db
from intents import model, store

DEPTH = 1_000_000
FEW = 5_000
OPEN_ORDERS = 200
OPEN = model.OrderFilter(model.STATUS_FILTERS["open"], descending=True)
FILL = """
INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec,
    quantity, status, created_at, updated_at, next_attempt_at, open_actions)
SELECT '{account}', md5(n::text)::uuid, '{organization}', 'live', 'S' || mod(n, 40), 'BUY', 'AUTO',
    '{{"Market": {{"quantity": "1"}}}}', 1, '{status}', now() - n * interval '6 seconds', now(), now(), 0
FROM generate_series({start}, {end}) n;
INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload, symbol,
    order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at, previous_hash, hash,
    created_at)
SELECT '{account}', n, gen_random_uuid(), '{organization}', 'live', md5(n::text)::uuid, 'CREATE', '{{}}',
    'S' || mod(n, 40), 'BUY', '{{}}', 'AUTO', 'api_key', 'x', '{{}}', '{status}', now() - n * interval '6 seconds', '',
    '', now() - n * interval '6 seconds'
FROM generate_series({start}, {end}) n;
"""
NAIVE = text("""
    SELECT i.status, a.type, a.symbol, count(*) FROM intents.action a
    JOIN intents.intent i ON i.account_id = a.account_id AND i.id = a.intent_id
    WHERE a.account_id = :account GROUP BY GROUPING SETS ((i.status), (a.type), (a.symbol))
""")


def median_ms(work: Callable[[], object], count: int) -> float:
    found = []
    for _ in range(count):
        started = time.perf_counter()
        work()
        found.append((time.perf_counter() - started) * 1000)
    return statistics.median(found)


def open_page(connection: Connection, account: UUID) -> list[model.Order]:
    keys = store.order_keys(connection, account, OPEN, None, 101)
    return store.orders(connection, account, OPEN, keys, 100)


def measure(on: Stage, connection: Connection, total: int) -> list[Ratio]:
    account, organization = on.accounts[0], uuid4()

    def fill(start: int, end: int, status: str = "FILLED") -> None:
        whose = {"account": account, "organization": organization}
        connection.exec_driver_sql(FILL.format(**whose, start=start, end=end, status=status))
        print(f"  {end:,} actions")

    fill(total + 1, total + OPEN_ORDERS, "ACCEPTED")
    fill(1, FEW)
    connection.exec_driver_sql("ANALYZE intents.action, intents.intent")
    few = median_ms(lambda: open_page(connection, account), 51)
    for start in range(FEW + 1, total + 1, 500_000):
        fill(start, min(total, start + 499_999))
    connection.exec_driver_sql(
        f"INSERT INTO intents.account_head VALUES ('{account}', '{organization}', {total + OPEN_ORDERS}, '', '')"
    )
    connection.exec_driver_sql("ANALYZE intents.action, intents.intent")
    many = median_ms(lambda: open_page(connection, account), 51)
    while store.roll_up(connection, account):
        pass
    connection.exec_driver_sql("ANALYZE intents.statistic")
    depth = min(DEPTH, total // 2)
    first = median_ms(lambda: store.page(connection, account, 0, 100), 51)
    deep = median_ms(lambda: store.page(connection, account, depth, 100), 51)
    naive = median_ms(lambda: connection.execute(NAIVE, {"account": account}).all(), 3)
    rolled = median_ms(lambda: store.counts(connection, account, "day", None), 11)
    return [
        Ratio(f"page of 100 at depth {depth:,} / at depth 0", "ms", first, deep, 0.0, 1.5, at_most=True),
        Ratio(f"page of 100 open orders beside {total:,} / beside {FEW:,}", "ms", few, many, 0.0, 1.5, at_most=True),
        Ratio(f"statistics of {total:,} actions / naive count", "ms", naive, rolled, 0.0, 0.02, at_most=True),
    ]


def main() -> None:
    total = int(float(sys.argv[1]) * 1_000_000) if len(sys.argv) > 1 else 5_000_000
    with stage() as on:
        engine = create_engine(db.with_driver(on.admin_url), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            found = measure(on, connection, total)
        engine.dispose()
    report("Reading the log", found, versions=("python", "sqlalchemy"), command="make bench NAME=submit_reads")


if __name__ == "__main__":
    main()
