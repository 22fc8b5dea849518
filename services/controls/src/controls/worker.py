"""controls' processes beside the web: `python -m controls.worker relay` and `… consumer`."""

from collections.abc import Callable, Mapping
from functools import partial
from threading import Event

from chassis import queues
from chassis.feed import Feed, Handle, has_news
from chassis.outbox import Outbox
from chassis.outbox.relay import Relay, Routes
from chassis.queues import Publisher
from chassis.worker.consumer import FeedConsumer
from chassis.worker.main import Job, Prepared, main
from controls import store, usecases
from controls.app import dependencies
from controls.config import Config
from controls.model import EVENT_TYPES

QUEUE = queues.name("controls", "consumer")
ROUTES: Routes = {queues.name("intents", "consumer"): EVENT_TYPES}
SOURCES: Mapping[str, Callable[[Outbox], Handle]] = {
    "accounts": lambda _: usecases.apply_account_event,
    "intents": lambda outbox: partial(usecases.reduce_after_loss, outbox),
}


def relay(config: Config, name: str) -> Prepared:
    outbox = dependencies(config, name).outbox
    return Prepared(Relay(outbox, Publisher(config.queues), ROUTES, keep_days=config.outbox_keep_days).run)


def _drain(deps: usecases.Deps, source: str, stop: Event) -> int:
    """What is consumed may have appended an event of ours: then our relay need not find it by polling."""
    consumed = Feed(deps.engine, store.SCHEMA, source).drain(SOURCES[source](deps.outbox), stop)
    if consumed:
        deps.outbox.notifier.notify()
    return consumed


def consumer(config: Config, name: str) -> Prepared:
    deps = dependencies(config, name)
    drains = [partial(_drain, deps, source) for source in SOURCES]
    news = partial(has_news, deps.engine, store.SCHEMA, SOURCES)
    return Prepared(partial(FeedConsumer(name, QUEUE, drains, news).run, config.queues))


JOBS = {"relay": Job(Config, relay), "consumer": Job(Config, consumer)}

if __name__ == "__main__":
    main("controls", JOBS)
