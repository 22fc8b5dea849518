"""accounts' processes beside the web: `python -m accounts.worker relay`."""

import sys
from collections.abc import Mapping
from uuid import UUID

from accounts import model, usecases
from accounts.app import dependencies
from accounts.config import Config
from chassis import process
from chassis.config import stop_on_bad_configuration
from chassis.outbox import Row
from chassis.outbox.relay import Handler, Relay
from chassis.queues import Outage, Publisher
from vault import Refused, Unavailable

CONTROLS_QUEUE = "tip.controls"
INTENTS_QUEUE = "tip.intents"
STREAM_GATEWAY_QUEUE = "tip.stream_gateway"
LISTENERS = (CONTROLS_QUEUE, INTENTS_QUEUE, STREAM_GATEWAY_QUEUE)


def handlers(deps: usecases.Deps) -> Mapping[str, Handler]:
    def settle(row: Row) -> None:
        credential_id = UUID(row.payload["credential_id"])
        try:
            usecases.settle_credential(deps, credential_id)
        except Unavailable:
            raise Outage("vault_unavailable") from None
        except Refused:
            if row.attempts >= deps.outbox.attempt_limit:
                usecases.give_up(deps, credential_id)
            raise

    return dict.fromkeys(model.CREDENTIAL_EVENTS, settle)


def relay() -> None:
    with stop_on_bad_configuration("accounts-relay"):
        config = Config.from_env()
        deps = dependencies(config)
    runner = Relay(deps.outbox, Publisher(config.queues), LISTENERS, handlers(deps), keep_days=config.outbox_keep_days)
    process.run("accounts-relay", runner.run, log_format=config.log_format, level=config.log_level)


if __name__ == "__main__":
    {"relay": relay}[sys.argv[1]]()
