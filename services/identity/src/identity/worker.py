"""identity's process beside the web: `python -m identity.worker relay` delivers the outbox and tidies up."""

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from chassis import logs, process
from chassis.config import stop_on_bad_configuration
from chassis.keyuse import KeyUses
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from identity import usecases
from identity.app import dependencies
from identity.config import RelayConfig

log = logs.get(__name__)

LISTENERS: tuple[str, ...] = ()
DELETIONS_EVERY_S = 1.0
KEY_USES_EVERY_S = 10.0
RETIREMENT_EVERY_S = 60.0
LAST_CHORE_S = 5.0


@dataclass
class Chore:
    """Something done again and again; `run_once` is all there is to it."""

    every_s: float
    run_once: Callable[[], object]
    _due_at: float = field(default=0.0, init=False)

    def run_if_due(self) -> None:
        if time.monotonic() >= self._due_at:
            self._due_at = time.monotonic() + self.every_s
            self.run_once()


def chores(deps: usecases.Deps, uses: KeyUses) -> tuple[Chore, ...]:
    return (
        Chore(DELETIONS_EVERY_S, lambda: usecases.finish_deletions(deps)),
        Chore(KEY_USES_EVERY_S, lambda: usecases.record_key_uses(deps, uses.collect())),
        Chore(RETIREMENT_EVERY_S, lambda: usecases.retire_signing_keys(deps)),
    )


def run_chores(todo: tuple[Chore, ...], stop: threading.Event) -> None:
    """Until asked to stop. A chore that fails is due again later, and stops none of its neighbours."""
    while not stop.wait(0.2):
        for chore in todo:
            try:
                chore.run_if_due()
            except Exception as error:  # noqa: BLE001 - the database, Redis, or a fault of ours: the next turn will tell
                log.warning("chore_failed", error=type(error).__name__)


def relay() -> None:
    with stop_on_bad_configuration("identity-relay"):
        config = RelayConfig.from_env()
        deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, keep_days=config.outbox_keep_days)
    todo = chores(deps, KeyUses(config.redis_url))

    def loop(stop: threading.Event) -> None:
        # A daemon: when the relay dies of a fault, so does the process, and its supervisor starts it again.
        beside = threading.Thread(target=run_chores, args=(todo, stop), name="chores", daemon=True)
        beside.start()
        runner.run(stop)
        beside.join(timeout=LAST_CHORE_S)

    process.run("identity-relay", loop, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay}[sys.argv[1]]()
