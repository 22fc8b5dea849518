"""accounts' processes beside the web: `python -m accounts.worker relay` and `… listen`."""

import sys
import threading
from collections.abc import Mapping
from functools import partial
from uuid import UUID

from accounts import model, store, usecases
from accounts.app import dependencies
from accounts.config import Config
from chassis import db, process
from chassis.config import ServiceConfig, stop_on_bad_configuration
from chassis.feed import Feed
from chassis.outbox import Row
from chassis.outbox.relay import Failure, Handler, Relay
from chassis.queues import Outage, Publisher
from chassis.worker.outage import unless_unavailable
from vault import Unavailable

# Doorbells of those who hear from accounts. A doorbell that nobody answers would only pile up in the queue.
LISTENERS = ("tip.controls",)
LISTEN_EVERY_S = 1.0
FAILURES: Mapping[str, Failure] = dict.fromkeys(model.CREDENTIAL_EVENTS, usecases.give_up)


def handlers(deps: usecases.Deps) -> Mapping[str, Handler]:
    def settle(row: Row) -> None:
        credential_id = UUID(row.payload["credential_id"])
        try:
            usecases.settle_credential(deps, credential_id)
        except Unavailable:
            raise Outage("vault_unavailable") from None

    return dict.fromkeys(model.CREDENTIAL_EVENTS, settle)


def relay() -> None:
    with stop_on_bad_configuration("accounts-relay"):
        config = Config.from_env()
        deps = dependencies(config)
    publisher = Publisher(config.queues)
    runner = Relay(deps.outbox, publisher, LISTENERS, handlers(deps), FAILURES, keep_days=config.outbox_keep_days)
    process.run("accounts-relay", runner.run, log_format=config.log_format, level=config.log_level)


def listen() -> None:
    with stop_on_bad_configuration("accounts-listen"):
        config = ServiceConfig.from_env()  # and no more: this process opens no secret, so it never holds the key
        engine = db.engine(config.database_url, pool_size=config.database_pool_size, name="accounts-listen")
        feed = Feed(engine, store.SCHEMA, "intents")

    def loop(stop: threading.Event) -> None:
        # Without a doorbell: intents tell much, and little of it is for us.
        while not stop.is_set():
            unless_unavailable("accounts-listen", partial(feed.catch_up, usecases.hear_intents, stop), 0)
            stop.wait(LISTEN_EVERY_S)

    process.run("accounts-listen", loop, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay, "listen": listen}[sys.argv[1]]()
