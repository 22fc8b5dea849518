"""A broker's stream of updates about one account."""

import random
import threading
import time
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from intents.execution.credentials import CredentialChanged, CredentialInvalid, KeyPair, NoCredential, VaultDown
from intents.execution.metrics import STREAMS
from intents.execution.model.inputs import BrokerReport
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.watches import Watch
from tip_brokers import Broker, BrokerError, OrderUpdate, UnknownBroker

log = logs.get(__name__)

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
NO_KEYS = (CredentialChanged, CredentialInvalid, NoCredential, VaultDown, UnknownBroker, KeyError)
"""Why an account cannot be opened at its broker."""


def listen(
    watch: Watch,
    stop: threading.Event,
    pair_of: Callable[[WatchedAccount], KeyPair],
    broker_of: Callable[[WatchedAccount, KeyPair], Broker],
    record: Callable[[BrokerReport], None],
) -> None:
    """Until `stop` is set; a line that breaks is opened again, and what was missed is reconciled."""
    account_id, pause, listening = watch.account.account_id, FIRST_PAUSE_SECONDS, False

    def on_ready() -> None:
        nonlocal pause, listening
        pause, listening = FIRST_PAUSE_SECONDS, True
        watch.begin_listening()
        STREAMS.inc()

    def on_update(update: OrderUpdate) -> None:
        watch.note_update(update.order.broker_order_id)
        record(BrokerReport(account_id, update.order, update.occurred_at, update.execution, update.rejection))

    while not stop.is_set():
        try:
            pair = pair_of(watch.account)
            watch.credential = pair.reference
            broker_of(watch.account, pair).listen(on_ready, on_update, stop)
        except (BrokerError, *NO_KEYS, SQLAlchemyError, TimeoutError) as error:
            log.info("stream_lost", account_id=str(account_id), error=type(error).__name__)
        except Exception as error:
            log.error("stream_lost", account_id=str(account_id), exc_info=error)
        spread = random.uniform(0.5, 1.5)  # noqa: S311 - spreads them, guards nothing # nosec B311
        if listening:
            listening = False
            watch.end_listening(time.monotonic() + spread)
            STREAMS.dec()
        stop.wait(pause * spread)
        pause = min(LONGEST_PAUSE_SECONDS, pause * 2)
