"""The processes of intents beside the web: `python -m intents.worker relay`."""

import sys
import threading
import time
from functools import partial

from chassis import db, logs, process, sealing
from chassis.config import stop_on_bad_configuration
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from chassis.worker.outage import unless_unavailable
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
            unless_unavailable("intents-housekeeper", lambda: usecases.hear(deps, stop), 0)
            if time.monotonic() >= due and not unless_unavailable("intents-housekeeper", keep_house, 0):
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
            if unless_unavailable("intents-signer", lambda: usecases.sign_heads(deps), 0) < usecases.SIGNED_AT_ONCE:
                stop.wait(config.sign_every_seconds)

    process.run("intents-signer", loop, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {
        "relay": relay,
        "housekeeper": housekeeper,
        "signer": signer,
        "executor": processes.executor,
        "reconciler": processes.reconciler,
    }[sys.argv[1]]()
