"""The executor's throughput against Celery's rate of no-op tasks over the same Valkey.

The broker answers from memory, so that what is compared is our own part: claiming, keeping order per intent, recording
the answer and its event durably.
"""

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg2
import redis
from celery import Celery

from bench.harness import Ratio, pairs
from bench.submit_stage import Stage
from chassis import process
from chassis.outbox.notify import NotifyListener, channel
from intents.execution import executor as executing
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.config import ExecutionConfig
from intents.execution.executor import Executor
from intents.execution.liveness import Liveness
from intents.execution.processes import credentials_of, engine_of
from intents.store import SCHEMA
from intents.store.connections import PreparedConnections
from tip_broker_alpaca import PAPER
from tip_brokers import Brokers, ClientIds, NewOrder, Order, OrderStatus

QUICK = bool(os.environ.get("BENCH_QUICK"))
PAIRS = 1 if QUICK else 5
INTENTS = 2_000 if QUICK else 10_000
GOAL = 5.0
CELERY = Celery("bench", broker=os.environ.get("REDIS_URL", "redis://"))
CELERY.conf.update(task_ignore_result=True, worker_prefetch_multiplier=4)

FILL = """
WITH place AS (
    SELECT gen_random_uuid() AS intent_id, gen_random_uuid() AS action_id,
           (%(accounts)s::uuid[])[1 + i %% %(count)s] AS account_id, i / %(count)s + 1 AS turn
    FROM generate_series(0, %(rows)s - 1) i
), head AS (
    INSERT INTO intents.account_head AS head (account_id, last_sequence, last_hash, previous_hash)
    SELECT account_id, count(*), '', '' FROM place GROUP BY account_id
    ON CONFLICT (account_id) DO UPDATE SET last_sequence = head.last_sequence + excluded.last_sequence
    RETURNING account_id, last_sequence
), turns AS (SELECT account_id, count(*) AS turns FROM place GROUP BY account_id
), action AS (
    INSERT INTO intents.action (account_id, sequence, id, organization_id, environment, intent_id, type, payload,
        symbol, order_side, spec, route_strategy, actor_type, actor_id, controls, to_status, intent_created_at,
        previous_hash, hash, created_at)
    SELECT account_id, last_sequence - turns + turn, action_id, gen_random_uuid(), 'live', intent_id, 'CREATE', '{}',
           'AAPL', 'BUY',
           '{"Limit": {"quantity": "10", "limit_price": "99.50"}}', 'AUTO', 'api_key', 'bench', '{}', 'PENDING', now(),
           '', '', now()
    FROM place JOIN head USING (account_id) JOIN turns USING (account_id)
)
INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, route_strategy, spec,
    quantity, status, created_at, updated_at, next_attempt_at)
SELECT account_id, intent_id, gen_random_uuid(), 'live', 'AAPL', 'BUY', 'AUTO',
       '{"Limit": {"quantity": "10", "limit_price": "99.50"}}', 10, 'PENDING', now(), now(), now()
FROM place
"""


@CELERY.task(name="nothing")
def nothing() -> None:
    """What Celery does for a task is all that is measured."""


@CELERY.task(name="mark")
def mark(name: str) -> None:
    redis.Redis.from_url(os.environ["REDIS_URL"]).set(name, time.time())


class Instant:
    """A broker that is out of the way."""

    client_ids = ClientIds.UNIQUE
    call_seconds = 0.1

    def create(self, order: NewOrder) -> Order:
        now = datetime.now(UTC)
        name, pending = order.client_order_id, OrderStatus.PENDING
        return Order(
            name, name, pending, order.symbol, order.order_side, order.kind, order.quantity, Decimal(0), None, now, now
        )

    def account(self, _secret: Mapping[str, str]) -> Any:
        return self


def run_executor() -> None:
    """The executor as it is, but for the broker."""
    config = ExecutionConfig.from_env()
    engine = engine_of(config, "bench-executor")
    instant = replace(PAPER, connect=lambda _environment, _settings: Instant())
    brokers = Brokers(config.broker_settings, {PAPER.name: instant})
    connections = PreparedConnections(engine)
    liveness = Liveness(engine, connections)
    dispatcher = BrokerDispatcher(brokers, credentials_of(config, engine), is_current=liveness.is_current)
    executor = Executor(
        connections, dispatcher, config.executor_threads, config.executor_lease_seconds, liveness=liveness
    )

    def loop(stop: threading.Event) -> None:
        executing.listen(executor, NotifyListener(engine, SCHEMA), config.queues, stop)
        executor.run(stop)

    process.run("bench-executor", loop)


def executor_rate(on: Stage) -> float:
    """Commands settled a second, from the moment that they are all due."""
    connection = psycopg2.connect(on.admin_url)
    connection.autocommit = True
    accounts = [str(account) for account in on.accounts]
    with connection.cursor() as cursor:
        cursor.execute(FILL, {"accounts": accounts, "count": len(accounts), "rows": INTENTS})
        started = time.monotonic()
        cursor.execute(f'NOTIFY "{channel(SCHEMA)}"')  # as whoever submits does
        while True:
            cursor.execute("SELECT 1 FROM intents.intent WHERE open_actions > 0 LIMIT 1")
            if cursor.fetchone() is None:
                break
            time.sleep(0.05)
        rate = INTENTS / (time.monotonic() - started)
        cursor.execute("SELECT count(*) FROM intents.intent WHERE status <> 'ACCEPTED'")
        assert cursor.fetchone() == (0,), "every command must have been accepted"
    connection.close()
    return rate


def celery_rate(on: Stage) -> float:
    """No-op tasks a second by one worker, all queued before it starts."""
    url = on.environment["REDIS_URL"]
    client = redis.Redis.from_url(url)
    client.flushall()
    tasks = INTENTS // 4
    with Celery("bench", broker=url) as app, app.producer_pool.acquire(block=True) as producer:
        app.send_task("mark", ["first"], producer=producer)
        for _ in range(tasks):
            app.send_task("nothing", producer=producer)
        app.send_task("mark", ["last"], producer=producer)
    options = ["--pool", "solo", "--loglevel", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with on.running(["-m", "celery", "-A", "bench.roundtrip_throughput:CELERY", "worker", *options]):
        while client.get("last") is None:
            time.sleep(0.05)
    return tasks / (float(client.get("last") or 0) - float(client.get("first") or 0))  # type: ignore[arg-type]


def throughput(on: Stage) -> Ratio:
    with on.running(["-m", "bench.roundtrip_throughput"]):
        time.sleep(4)
        executor_rate(on)  # warms it
        on.execute("ANALYZE")  # as autovacuum does in any database that has seen some orders
        return pairs(
            "executor against Celery no-op",
            lambda: celery_rate(on),
            lambda: executor_rate(on),
            unit="a second",
            count=PAIRS,
            goal=GOAL,
        )


if __name__ == "__main__":
    run_executor()
