"""The two processes of execution, wired: `python -m intents.worker executor` and `… reconciler`."""

import threading
from functools import partial

from sqlalchemy import Engine

from chassis import db
from chassis.health import Report
from chassis.hints import LogHeadHints
from chassis.outbox import Outbox
from chassis.outbox.notify import NotifyListener
from chassis.worker.main import Prepared
from intents.execution import executor as executing
from intents.execution import store
from intents.execution.broker_dispatcher import BrokerDispatcher
from intents.execution.config import ExecutionConfig
from intents.execution.credentials import Credentials, report_accepted, report_refused, report_tested
from intents.execution.executor import Executor
from intents.execution.liveness import Liveness
from intents.execution.overfill import reduce_overordered
from intents.execution.quotes import request_prices
from intents.execution.reconciler import Reconciler
from intents.execution.recorder import Recorder
from intents.model.events import EVENT_TYPES
from intents.store import READS, SCHEMA
from intents.store.connections import PreparedConnections
from intents.usecases import Deps
from tip_brokers import Brokers

NOTIFY_SECONDS = 1.0
LINGER_SECONDS = 0.003  # a broker reports an order and its fill one right after the other
OUTBOX = "outbox"  # whose topic says that something was submitted


def prepare_executor(config: ExecutionConfig, name: str) -> Prepared:
    engine = engine_of(config, name)
    running = build_executor(config, engine)

    def loop(stop: threading.Event) -> None:
        threads = executing.listen(running, NotifyListener(engine, SCHEMA), config.queues, stop)
        running.run(stop)
        executing.wait_for_end(threads)

    def ready() -> Report:
        db.ping(engine)
        return readiness(running.dispatcher)

    return Prepared(loop, ready)


def readiness(dispatcher: BrokerDispatcher) -> Report:
    """Ready as long as one broker can be reached; one that cannot must not stop the work for the others."""
    circuits = dispatcher.breakers.states()
    return Report(not circuits or set(circuits.values()) != {"open"}, {"circuits": circuits})


def engine_of(config: ExecutionConfig, name: str) -> Engine:
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    store.keep_plans(engine)
    return engine


def build_executor(config: ExecutionConfig, engine: Engine) -> Executor:
    deps = deps_of(config, engine)
    liveness = Liveness(engine, PreparedConnections(engine, most=2))  # which never waits for what broker threads read
    return Executor(
        deps.connections,
        dispatcher_of(config, deps, liveness),
        config.executor_threads,
        config.executor_lease_seconds,
        config.query_policy,
        deps.hints.publish,
        config.executor_account_calls,
        partial(reduce_overordered, deps),
        liveness,
    )


def deps_of(config: ExecutionConfig, engine: Engine) -> Deps:
    outbox = Outbox(engine, SCHEMA, event_types=EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    hints = LogHeadHints(config.queues)
    return Deps(engine, PreparedConnections(engine), outbox, hints, config.price_max_age)


def dispatcher_of(config: ExecutionConfig, deps: Deps, liveness: Liveness) -> BrokerDispatcher:
    on_refused = partial(report_refused, deps.outbox)
    tx = deps.connections.autocommit()
    refresh = partial(store.refresh, tx, price_max_age=deps.price_max_age, price_wait=config.price_wait)
    on_unpriced = partial(request_prices, deps.engine, deps.price_max_age, config.quote_seconds)
    return BrokerDispatcher(
        Brokers(config.broker_settings),
        credentials_of(config, deps.engine),
        on_refused,
        refresh,
        liveness.is_current,
        on_unpriced,
    )


def credentials_of(config: ExecutionConfig, engine: Engine) -> Credentials:
    keyring = config.keyring()
    secret = config.paper_account_secret or keyring.derive("paper accounts").hex()
    return Credentials(engine, secret, keyring, config.remote_vault())


def prepare_reconciler(config: ExecutionConfig, name: str) -> Prepared:
    engine = engine_of(config, name)
    running = build_reconciler(config, engine)

    def loop(stop: threading.Event) -> None:
        listener = NotifyListener(engine, SCHEMA, READS, OUTBOX)
        threading.Thread(target=_wake_on_notify, args=(running, listener, stop), name="notify", daemon=True).start()
        running.run(stop)

    return Prepared(loop)


def _wake_on_notify(reconciler: Reconciler, listener: NotifyListener, stop: threading.Event) -> None:
    while not stop.is_set():
        topics = listener.wait(NOTIFY_SECONDS)
        if READS in topics:
            reconciler.wake()
        elif topics:
            reconciler.attend()


def build_reconciler(config: ExecutionConfig, engine: Engine) -> Reconciler:
    deps = deps_of(config, engine)
    return Reconciler(
        engine,
        Brokers(config.broker_settings),
        credentials_of(config, engine),
        Recorder(
            deps.connections,
            policy=config.query_policy,
            publish_head=deps.hints.publish,
            on_next=deps.outbox.notifier.notify,
            linger_seconds=LINGER_SECONDS,
        ),
        config.reconcile_seconds,
        config.streams,
        partial(report_refused, deps.outbox),
        partial(report_accepted, deps.outbox),
        config.read_schedule,
        config.quote_seconds,
        partial(report_tested, deps.outbox),
    )
