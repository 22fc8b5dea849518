"""identity's processes beside the web: `python -m identity.worker relay`."""

import sys

from chassis import process
from chassis.config import stop_on_bad_configuration
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from identity.app import dependencies
from identity.config import Config

LISTENERS: tuple[str, ...] = ()


def relay() -> None:
    with stop_on_bad_configuration("identity-relay"):
        config = Config.from_env()
        deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, keep_days=config.outbox_keep_days)
    process.run("identity-relay", runner.run, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay}[sys.argv[1]]()
