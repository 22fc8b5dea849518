"""The processes of intents beside the web: `python -m intents.worker relay`."""

import sys
import threading
import time
from collections.abc import Callable
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from chassis import db, logs, process, sealing
from chassis.config import stop_on_bad_configuration
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from intents import usecases
from intents.app import dependencies
from intents.config import Config, SignerConfig
from intents.execution import executor, processes
from intents.signing import HeadSigner

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
    keep_house = partial(usecases.keep_house, deps, refusals_kept_days=config.refusals_kept_days)

    def loop(stop: threading.Event) -> None:
        due = 0.0
        while not stop.is_set():
            _unless_unavailable("housekeeper", lambda: usecases.hear(deps, stop))
            if time.monotonic() >= due and not _unless_unavailable("housekeeper", keep_house):
                due = time.monotonic() + config.statistics_every_seconds
            stop.wait(max(0.0, min(LISTEN_EVERY_S, due - time.monotonic())))

    process.run("intents-housekeeper", loop, log_format=config.log_format, level=config.log_level)


def signer() -> None:
    with stop_on_bad_configuration("intents-signer"):
        config = SignerConfig.from_env()
        key = sealing.decode_key(config.log_signing_key, "LOG_SIGNING_KEY")
    deps = usecases.SigningDeps(db.engine(config.database_url, pool_size=1, name="intents-signer"), HeadSigner(key))

    def loop(stop: threading.Event) -> None:
        # For `tip verify --public-key`: whoever distrusts the database must not have to take the key from it.
        log.info("log_signing_key", key_id=deps.signer.key_id, public_key=deps.signer.public_key.hex())
        while not stop.is_set():
            if _unless_unavailable("signer", lambda: usecases.sign_heads(deps)) < usecases.SIGNED_AT_ONCE:
                stop.wait(config.sign_every_seconds)

    process.run("intents-signer", loop, log_format=config.log_format, level=config.log_level)


def _unless_unavailable(name: str, work: Callable[[], int]) -> int:
    try:
        return work()
    except SQLAlchemyError as error:
        if not db.is_unavailable(error):
            raise
        log.warning("worker_database_unavailable", worker=name, error=type(error).__name__)
        return 0


if __name__ == "__main__":
    {
        "relay": relay,
        "housekeeper": housekeeper,
        "signer": signer,
        "executor": processes.executor,
        "reconciler": processes.reconciler,
    }[sys.argv[1]]()
