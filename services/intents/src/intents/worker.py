"""intents' processes beside the web: `python -m intents.worker relay`, `… consumer`, `… scheduler` and three more."""

from collections.abc import Callable, Mapping
from functools import partial
from threading import Event, Thread

from chassis import db, logs, queues
from chassis.config import decode_key
from chassis.feed import has_news
from chassis.outbox.notify import NotifyListener
from chassis.outbox.relay import Relay, Routes
from chassis.queues import Publisher
from chassis.worker.consumer import FeedConsumer
from chassis.worker.due import DueTasks, Find
from chassis.worker.main import Job, Prepared, main
from chassis.worker.periodic import PeriodicTask, run_tasks
from intents import store, usecases
from intents.app import dependencies
from intents.config import Config, SignerConfig
from intents.execution import executor, processes
from intents.execution.backlog import BacklogMonitor
from intents.execution.config import ExecutionConfig
from intents.execution.order_groups import tend_order_groups
from intents.execution.overfill import reduce_overordered
from intents.execution.stale import cancel_stale
from intents.execution.store import anything_waits, overordered, stale_orders
from intents.execution.store.groups import groups_to_tend
from intents.model.events import (
    CREDENTIAL_INVALID,
    CREDENTIAL_TESTED,
    CREDENTIAL_VALID,
    DAILY_LOSS_BREACHED,
    INTENT_SUBMITTED,
)
from intents.signing import HeadSigner
from intents.usecases.refusals import log_refusals

log = logs.get(__name__)

QUEUE = queues.name("intents", "consumer")
ROUTES: Routes = {
    executor.QUEUE: {INTENT_SUBMITTED},
    queues.name("accounts", "consumer"): {CREDENTIAL_VALID, CREDENTIAL_INVALID, CREDENTIAL_TESTED},
    queues.name("controls", "consumer"): {DAILY_LOSS_BREACHED},
}
SOURCES = usecases.FEEDS
EXPIRY_EVERY_S = 10.0
BULK_OPERATIONS_EVERY_S = 0.25
OWN_COMMANDS_EVERY_S = 1.0
"""How often the platform finds orders that it cancels or reduces by itself."""

REFUSALS_EVERY_S = 1.0
BACKLOG_EVERY_S = 1.0
ROLL_UP_FROM = 200
"""Fewer entries of a log are counted whenever its statistics are read, and not added to them yet."""
RELAY_PACE_S = 0.2
"""Executors are notified besides, so that submits may gather in the outbox."""
FINDERS: Mapping[str, Find] = {
    "roll_up": partial(store.accounts_to_roll_up, least=ROLL_UP_FROM, limit=1),
    "run_bulk_operations": store.has_unfinished_bulk_operation,
    "judge_daily_losses": partial(store.new_balances, limit=1),
    "cancel_stale": partial(stale_orders, limit=1),
    "log_refusals": partial(store.accounts_with_unlogged_refusals, limit=1),
    "measure_backlog": anything_waits,
    "reduce_overordered": partial(overordered, limit=1),
    "tend_order_groups": groups_to_tend,
}
NOTIFY_S = 1.0


def relay(config: Config, name: str) -> Prepared:
    outbox = dependencies(config, name).outbox
    publisher = Publisher(config.queues)
    return Prepared(Relay(outbox, publisher, ROUTES, keep_days=config.outbox_keep_days, pace_s=RELAY_PACE_S).run)


def consumer(config: Config, name: str) -> Prepared:
    deps = dependencies(config, name)
    feeds = [partial(usecases.drain_feed, deps, source) for source in SOURCES]
    drains: list[Callable[[Event], int]] = [usecases.CancelsAhead(deps).begin, *feeds]
    news = partial(has_news, deps.engine, store.SCHEMA, SOURCES)
    return Prepared(partial(FeedConsumer(name, QUEUE, drains, news).run, config.queues))


def scheduler(config: Config, name: str) -> Prepared:
    deps = dependencies(config, name)

    due = DueTasks(deps.engine, FINDERS)

    def loop(stop: Event) -> None:
        Thread(target=_find_on_notify, args=(deps, due, stop), name="notify", daemon=True).start()
        run_tasks(name, tasks(config, deps, due, stop), stop)

    return Prepared(loop)


def _find_on_notify(deps: usecases.Deps, due: DueTasks, stop: Event) -> None:
    listener = NotifyListener(deps.engine, store.SCHEMA, store.BULK_OPERATIONS)
    while not stop.is_set():
        if listener.wait(NOTIFY_S):
            due.find_again()


def tasks(config: Config, deps: usecases.Deps, due: DueTasks, stop: Event) -> tuple[PeriodicTask, ...]:
    maintain = partial(usecases.run_maintenance, deps, config.refusals_kept_days, stop, roll_up_from=ROLL_UP_FROM)
    backlog = BacklogMonitor(deps, config.backlog_max_age_seconds)

    def when_due(name: str, every_s: float, run_once: Callable[[], object]) -> PeriodicTask:
        return PeriodicTask(name, every_s, run_once, partial(due.includes, name))

    def is_backlog_due() -> bool:
        return not backlog.is_clear or due.includes("measure_backlog")

    return (
        PeriodicTask("run_maintenance", EXPIRY_EVERY_S, maintain),
        when_due("roll_up", config.statistics_every_seconds, maintain),
        when_due("run_bulk_operations", BULK_OPERATIONS_EVERY_S, partial(usecases.run_bulk_operations, deps, stop)),
        when_due("judge_daily_losses", OWN_COMMANDS_EVERY_S, partial(usecases.judge_daily_losses, deps)),
        when_due("cancel_stale", OWN_COMMANDS_EVERY_S, partial(cancel_stale, deps, stop)),
        when_due("log_refusals", REFUSALS_EVERY_S, partial(log_refusals, deps, stop)),
        PeriodicTask("measure_backlog", BACKLOG_EVERY_S, backlog.measure, is_backlog_due),
        when_due("reduce_overordered", OWN_COMMANDS_EVERY_S, partial(reduce_overordered, deps, stop)),
        when_due("tend_order_groups", OWN_COMMANDS_EVERY_S, partial(tend_order_groups, deps, stop)),
    )


def signer(config: SignerConfig, name: str) -> Prepared:
    key = decode_key(config.log_signing_key, "LOG_SIGNING_KEY")
    deps = usecases.SigningDeps(db.engine(config.database_url, pool_size=1, name=name), HeadSigner(key))

    def sign_heads() -> bool:
        return usecases.sign_heads(deps) == usecases.SIGNED_AT_ONCE

    def loop(stop: Event) -> None:
        # For `tip verify --public-key`: whoever distrusts the database must not have to take the key from it.
        log.info("log_signing_key", key_id=deps.signer.key_id, public_key=deps.signer.public_key.hex())
        run_tasks(name, [PeriodicTask("sign_heads", config.sign_every_seconds, sign_heads)], stop)

    return Prepared(loop)


JOBS = {
    "relay": Job(Config, relay),
    "consumer": Job(Config, consumer),
    "scheduler": Job(Config, scheduler),
    "signer": Job(SignerConfig, signer),
    "executor": Job(ExecutionConfig, processes.prepare_executor),
    "reconciler": Job(ExecutionConfig, processes.prepare_reconciler),
}

if __name__ == "__main__":
    main("intents", JOBS)
