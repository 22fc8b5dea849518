"""controls' processes beside the web: `python -m controls.worker relay` and `… listen`."""

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from chassis import db, logs, process, queues
from chassis.config import stop_on_bad_configuration
from chassis.feed import Feed
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from controls import store, usecases
from controls.app import dependencies
from controls.config import Config

log = logs.get(__name__)

# The doorbell of `listen`. Losing a ring costs a second: it sweeps.
QUEUE = "tip.controls"
# Doorbells of those who hear from controls. Whoever sweeps controls_api.feed hears without one; a doorbell that nobody
# answers would only pile up in the queue.
LISTENERS: tuple[str, ...] = ()


def hear(feed: Feed) -> Callable[[Sequence[dict[str, Any]]], None]:
    """What to do at every ring and every sweep: hear all of the feed that was not heard yet."""

    def work(_messages: Sequence[dict[str, Any]]) -> None:
        try:
            feed.catch_up(usecases.hear_account)
        except SQLAlchemyError as error:
            if not db.is_unavailable(error):
                raise
            log.warning("listener_database_unavailable", error=type(error).__name__)

    return work


def relay() -> None:
    with stop_on_bad_configuration("controls-relay"):
        config = Config.from_env()
    deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, keep_days=config.outbox_keep_days)
    process.run("controls-relay", runner.run, log_format=config.log_format, level=config.log_level)


def listen() -> None:
    with stop_on_bad_configuration("controls-listen"):
        config = Config.from_env()
    work = hear(Feed(dependencies(config).engine, store.SCHEMA, "accounts"))

    def loop(stop: threading.Event) -> None:
        queues.listen(config.queues, QUEUE, work, stop)

    process.run("controls-listen", loop, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay, "listen": listen}[sys.argv[1]]()
