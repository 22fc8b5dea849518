"""A relay as its own process, to be killed: python relay_process.py DATABASE_URL REDIS_URL QUEUE ATTEMPT_LIMIT."""

import os
import signal
import sys

from chassis import db, process
from chassis.outbox import Outbox, Row
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from tip_testing.outbox import every_event


def kill_the_worker(_row: Row) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(database_url: str, redis_url: str, queue: str, attempt_limit: str) -> None:
    engine = db.engine(database_url, pool_size=3, name="relay")
    outbox = Outbox(engine, "identity", attempt_limit=int(attempt_limit))
    relay = Relay(outbox, Publisher(redis_url), every_event(queue), {"poison.created": kill_the_worker}, batch=10)
    process.run("relay", relay.run, log_format="json")


if __name__ == "__main__":
    main(*sys.argv[1:])
