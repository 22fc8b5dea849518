"""controls' processes beside the web: `python -m controls.worker relay` and `… listen`."""

import sys
import threading
from functools import partial

from chassis import process, queues
from chassis.config import stop_on_bad_configuration
from chassis.feed import Feed
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from chassis.worker.outage import unless_unavailable
from controls import store, usecases
from controls.app import dependencies
from controls.config import Config

# The doorbell of `listen`. Losing a ring costs a second: it sweeps.
QUEUE = "tip.controls"
# Doorbells of those who hear from controls. Whoever sweeps controls_api.feed hears without one; a doorbell that nobody
# answers would only pile up in the queue.
LISTENERS: tuple[str, ...] = ()


def relay() -> None:
    with stop_on_bad_configuration("controls-relay"):
        config = Config.from_env()
    deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, keep_days=config.outbox_keep_days)
    process.run("controls-relay", runner.run, log_format=config.log_format, level=config.log_level)


def listen() -> None:
    with stop_on_bad_configuration("controls-listen"):
        config = Config.from_env()
    feed = Feed(dependencies(config).engine, store.SCHEMA, "accounts")

    def loop(stop: threading.Event) -> None:
        drain = partial(feed.catch_up, usecases.hear_account, stop)
        queues.listen(config.queues, QUEUE, lambda _messages: unless_unavailable("controls-listen", drain, 0), stop)

    process.run("controls-listen", loop, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay, "listen": listen}[sys.argv[1]]()
