"""accounts' processes beside the web: `python -m accounts.worker relay` and `… consumer`."""

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from accounts import model, store, usecases
from accounts.app import dependencies
from accounts.config import Config
from chassis import db, queues
from chassis.config import ServiceConfig
from chassis.feed import Feed, Handle, has_news
from chassis.outbox import Outbox, Row
from chassis.outbox.relay import Failure, Handler, Relay, Routes
from chassis.queues import Outage, Publisher
from chassis.worker.consumer import FeedConsumer
from chassis.worker.main import Job, Prepared, main
from credential_vault import Unavailable

QUEUE = queues.name("accounts", "consumer")
ROUTES: Routes = {
    queues.name("controls", "consumer"): {model.ACCOUNT_DELETED},
    queues.name("intents", "consumer"): model.EVENT_TYPES,
}
SOURCES: Mapping[str, Handle] = {"intents": usecases.apply_intents_event}
FAILURES: Mapping[str, Failure] = dict.fromkeys(model.CREDENTIAL_EVENTS, usecases.give_up)


def handlers(deps: usecases.Deps) -> Mapping[str, Handler]:
    def settle(row: Row) -> None:
        credential_id = UUID(row.payload["credential_id"])
        try:
            usecases.settle_credential(deps, credential_id)
        except Unavailable:
            raise Outage("vault_unavailable") from None

    return dict.fromkeys(model.CREDENTIAL_EVENTS, settle)


def relay(config: Config, name: str) -> Prepared:
    deps = dependencies(config, name)
    publisher = Publisher(config.queues)
    runner = Relay(deps.outbox, publisher, ROUTES, handlers(deps), FAILURES, keep_days=config.outbox_keep_days)
    return Prepared(runner.run)


def consumer(config: ServiceConfig, name: str) -> Prepared:
    """Reads no more than every service: this process opens no secret, so it never holds the key."""
    engine = db.engine(config.database_url, pool_size=config.database_pool_size, name=name)
    outbox = Outbox(engine, store.SCHEMA, event_types=model.EVENT_TYPES, attempt_limit=config.outbox_attempt_limit)
    feeds = [partial(Feed(engine, store.SCHEMA, source).drain, handle) for source, handle in SOURCES.items()]
    news = partial(has_news, engine, store.SCHEMA, SOURCES)
    consumer = FeedConsumer(name, QUEUE, feeds, news, [partial(usecases.finish_deletions, outbox)])
    return Prepared(partial(consumer.run, config.queues))


JOBS = {"relay": Job(Config, relay), "consumer": Job(ServiceConfig, consumer)}

if __name__ == "__main__":
    main("accounts", JOBS)
