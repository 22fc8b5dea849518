"""The outbox: drain rate, its peers, the batch that pays, idle latency, the health report: `make bench NAME=outbox`.

References of the drain: the same claims and completions without publishing (what Postgres allows), and the job rate of
Procrastinate, which also keeps its jobs in Postgres and runs a no-op for each. BENCH_QUICK=1 is a trial with few rows.
"""

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import procrastinate
import psycopg2
import redis

from accounts import model
from bench.harness import Ratio, pairs, report
from chassis import db, migrations, queues
from chassis.outbox import Event, Outbox
from chassis.outbox.relay import Relay
from chassis.outbox.store import COUNTED_AT_ONCE
from chassis.queues import Publisher
from chassis.services import ROLES
from tip_local.postgres import EmbeddedPostgres, create_database
from tip_local.valkey import EmbeddedValkey

QUICK = bool(os.environ.get("BENCH_QUICK"))
PAIRS = 1 if QUICK else 5
ROWS = 2_000 if QUICK else 20_000
JOBS = 300 if QUICK else 2_000
SAMPLES = 100 if QUICK else 1_000
COMPLETED = 200_000 if QUICK else 5_000_000
OPEN = 5_000
BACKLOG = 100_000 if QUICK else 1_000_000
QUEUES = ("bench.controls", "bench.intents", "bench.stream_gateway")
PASSWORD = "bench"
IDLE_GOAL_MS = 20.0

FILL = """
INSERT INTO accounts.outbox (event_id, event_type, ordering_key, payload, status, position, attempts, created_at)
SELECT gen_random_uuid(), (%(types)s)[1 + i %% 6], i::text, '{"account_id": "0"}', %(status)s,
       CASE WHEN %(status)s = 'completed' THEN i END, (%(status)s = 'completed')::int,
       now() - interval '1 day' + i * interval '1 ms'
FROM generate_series(1, %(count)s) i
"""
NAIVE = """
SELECT status, event_type, count(*), min(created_at), max(attempts), min(claimed_at)
FROM accounts.outbox GROUP BY status, event_type
"""


class Silent:
    """Publishes nothing: what is left is the database's part."""

    def publish(self, _queue: str, _body: dict[str, Any]) -> None:
        pass


class Stage:
    """Servers as they run for real (synchronous commits), one database."""

    def __init__(self, postgres: EmbeddedPostgres, valkey: EmbeddedValkey) -> None:
        create_database(postgres.url, "bench")
        self.url, self.redis_url = postgres.url_of("bench"), valkey.url
        migrations.migrate(self.url, dict.fromkeys(ROLES, PASSWORD))
        self.engine = db.engine(self.url, pool_size=4, name="bench")
        self.outbox = Outbox(self.engine, "accounts")
        self.connection = psycopg2.connect(self.url)
        self.connection.autocommit = True
        self.redis = redis.Redis.from_url(valkey.url)

    def sql(self, statement: str, **values: Any) -> list[Any]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    def empty(self) -> None:
        self.sql("TRUNCATE accounts.outbox, accounts.outbox_completed, accounts.outbox_backlog RESTART IDENTITY")
        self.sql("UPDATE accounts.outbox_head SET last_position = 0, counted_below = 0")
        self.redis.flushall()

    def fill(self, status: str, count: int) -> None:
        self.sql(FILL, types=list(model.EVENT_TYPES), status=status, count=count)
        if status == "completed":
            self.sql("""INSERT INTO accounts.outbox_completed SELECT event_type, attempts, count(*)
                        FROM accounts.outbox WHERE status = 'completed' GROUP BY 1, 2""")


@contextmanager
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="tip-bench-") as directory:
        postgres, valkey = EmbeddedPostgres(Path(directory) / "pg"), EmbeddedValkey(Path(directory) / "valkey")
        with postgres, valkey:
            made = Stage(postgres, valkey)
            yield made
            made.connection.close()
            made.engine.dispose()


def drain(made: Stage, publisher: Any, *, batch: int = 100, rows: int = ROWS) -> float:
    """Rows a second, by one relay."""
    made.empty()
    made.fill("pending", rows)
    made.sql("VACUUM ANALYZE accounts.outbox")
    relay = Relay(made.outbox, publisher, dict.fromkeys(QUEUES, model.EVENT_TYPES), batch=batch)
    began = time.perf_counter()
    while relay.drain_once():
        pass
    rate = rows / (time.perf_counter() - began)
    if made.sql("SELECT count(*) FROM accounts.outbox WHERE status <> 'completed'") != [(0,)]:
        sys.exit("bench: the outbox was not drained")
    return rate


def procrastinate_rate(made: Stage) -> float:
    """No-op jobs a second, by one worker at its best known concurrency."""
    return asyncio.run(_procrastinate_rate(made))


async def _procrastinate_rate(made: Stage) -> float:
    made.sql("DROP SCHEMA IF EXISTS procrastinate CASCADE; CREATE SCHEMA procrastinate")
    connector = procrastinate.PsycopgConnector(
        conninfo=made.url, kwargs={"options": "-c search_path=procrastinate"}, max_size=60
    )
    app = procrastinate.App(connector=connector)

    @app.task(name="nothing")
    async def nothing(number: int) -> None:
        pass

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await nothing.batch_defer_async(*({"number": number} for number in range(JOBS)))
        began = time.perf_counter()
        await app.run_worker_async(wait=False, concurrency=50, install_signal_handlers=False, listen_notify=False)
        return JOBS / (time.perf_counter() - began)


def knee(made: Stage, publisher: Publisher) -> tuple[list[Ratio], str]:
    """Batches of 100 against larger and smaller ones."""

    def of(batch: int) -> Callable[[], float]:
        return lambda: drain(made, publisher, batch=batch, rows=max(1_000, ROWS // 2))

    ratios = [
        pairs("batches of 100 / of 500", of(500), of(100), unit="rows/s", count=PAIRS, goal=0.8),
        pairs("batches of 100 / of 10", of(10), of(100), unit="rows/s", count=PAIRS, goal=2.0),
    ]
    curve = ", ".join(f"{batch}: {of(batch)():,.0f}" for batch in (1, 10, 50, 100, 200, 500))
    return ratios, f"Rows a second by batch size, once each: {curve}."


def idle_latency(made: Stage) -> Ratio:
    """p99 from the commit of a row to its message in the queue, one row at a time, an idle relay process."""
    made.empty()
    environment = {
        **os.environ,
        "DATABASE_URL": made.url,
        "REDIS_URL": made.redis_url,
        "VAULT_KEY_ENCRYPTION_KEY": "A" * 43 + "=",
        "CURSOR_KEY": "for-the-benchmark",
        "LOG_LEVEL": "warning",
    }
    relay = subprocess.Popen([sys.executable, "-m", "accounts.worker", "relay"], env=environment)
    try:
        waits = [_one_row(made) for _ in range(SAMPLES + 20)][20:]
    finally:
        relay.send_signal(signal.SIGTERM)
        relay.wait()
    p50, p99 = statistics.median(waits), statistics.quantiles(waits, n=100)[98]
    print(f"  idle: p50 {p50:.1f} ms, p99 {p99:.1f} ms, worst {max(waits):.1f} ms")
    return Ratio("idle, p99 from commit to message", "ms", IDLE_GOAL_MS, p99, max(waits) - p50, 1.0, at_most=True)


def _one_row(made: Stage) -> float:
    time.sleep(0.02)
    with made.outbox.begin() as tx:
        made.outbox.append(tx, Event("account.created", {"account_id": "0"}))
    began = time.perf_counter()
    message = made.redis.blpop(["tip.intents.consumer"], timeout=10)
    if message is None:
        sys.exit("bench: no message came")
    return (time.perf_counter() - began) * 1000


def health(made: Stage) -> list[Ratio]:
    """The report against counting everything, with much done, and with much to do."""

    def naive() -> float:
        return timed(lambda: made.sql(NAIVE))

    def ours() -> float:
        return timed(made.outbox.report)

    made.empty()
    made.fill("completed", COMPLETED)
    made.fill("pending", OPEN)
    made.sql("VACUUM ANALYZE accounts.outbox")
    ours()  # the statement is prepared once per process
    done = pairs(
        f"health, {COMPLETED:,} completed, {OPEN:,} open / GROUP BY", naive, ours,
        unit="ms", count=PAIRS, goal=0.01, at_most=True,
    )  # fmt: skip
    made.empty()
    made.fill("pending", BACKLOG)
    made.sql("ANALYZE accounts.outbox")
    first = [ours() for _ in range(BACKLOG // COUNTED_AT_ONCE + 1)]
    said = f"the first {len(first)} reports with {BACKLOG:,} waiting, each counting a part of them for all that follow"
    print(f"  {said}: {max(first):.1f} ms at most")
    waiting = pairs(
        f"health, {BACKLOG:,} waiting / GROUP BY", naive, ours, unit="ms", count=PAIRS, goal=0.1, at_most=True
    )
    return [done, waiting]


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    queues.LONGEST_QUEUE = sys.maxsize  # nobody listens here, and every message is to be paid for all the same
    with stage() as made:
        publisher = Publisher(made.redis_url)
        ratios = [
            pairs(
                "drain / the same without publishing",
                lambda: drain(made, Silent()),
                lambda: drain(made, publisher),
                unit="rows/s",
                count=PAIRS,
                goal=0.3,
            ),
            pairs(
                "drain / Procrastinate's jobs",
                lambda: procrastinate_rate(made),
                lambda: drain(made, publisher),
                unit="1/s",
                count=PAIRS,
                goal=10.0,
            ),
        ]
        by_batch, curve = knee(made, publisher)
        ratios += [*by_batch, idle_latency(made), *health(made)]
        publisher.close()
    if QUICK:
        for ratio in ratios:
            print(f"{ratio.name}: {ratio.ratio:.3f} {ratio.met}")
        return
    report(
        "Outbox",
        ratios,
        versions=("python", "sqlalchemy", "psycopg2-binary", "kombu", "procrastinate"),
        command="make bench NAME=outbox",
        notes=f"One relay, three queues, synchronous commits. {curve}",
    )


if __name__ == "__main__":
    main()
