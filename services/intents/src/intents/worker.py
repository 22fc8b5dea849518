"""The processes of intents beside the web: `python -m intents.worker relay`."""

import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from chassis import db, logs, process
from chassis.config import stop_on_bad_configuration
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from intents import usecases
from intents.app import dependencies
from intents.config import Config
from intents.execution import executor, processes

log = logs.get(__name__)

LISTEN_EVERY_S = 0.5
LISTENERS: tuple[str, ...] = (executor.QUEUE,)


def relay() -> None:
    with stop_on_bad_configuration("intents-relay"):
        config = Config.from_env()
    deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, keep_days=config.outbox_keep_days)
    process.run("intents-relay", runner.run, log_format=config.log_format, level=config.log_level)


def housekeeper() -> None:
    with stop_on_bad_configuration("intents-housekeeper"):
        config = Config.from_env()
    deps = dependencies(config)
    keep_house = partial(usecases.keep_house, refusals_kept_days=config.refusals_kept_days)

    def loop(stop: threading.Event) -> None:
        due = 0.0
        while not stop.is_set():
            _unless_unavailable(lambda deps: usecases.hear(deps, stop), deps)
            if time.monotonic() >= due and not _unless_unavailable(keep_house, deps):
                due = time.monotonic() + config.statistics_every_seconds
            stop.wait(max(0.0, min(LISTEN_EVERY_S, due - time.monotonic())))

    process.run("intents-housekeeper", loop, log_format=config.log_format, level=config.log_level)


def _unless_unavailable(work: Callable[[usecases.Deps], int], deps: usecases.Deps) -> int:
    try:
        return work(deps)
    except SQLAlchemyError as error:
        if not db.is_unavailable(error):
            raise
        log.warning("housekeeper_database_unavailable", error=type(error).__name__)
        return 0


if __name__ == "__main__":
    {
        "relay": relay,
        "housekeeper": housekeeper,
        "executor": processes.executor,
        "reconciler": processes.reconciler,
    }[sys.argv[1]]()
