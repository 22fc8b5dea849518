"""Prices of the symbols that an account trades, holds or limits, or that a caller requested."""

from datetime import timedelta

from sqlalchemy import Engine

from chassis import db, logs
from intents.execution import store
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.known_orders import WatchedAccount
from intents.store.order_facts import needs_exposure
from intents.store.quotes import request_quotes, unpriced_symbols
from tip_brokers import Broker, BrokerError

log = logs.get(__name__)

MOST_SYMBOLS = 200  # of one read: two requests for each hundred


def read_quotes(engine: Engine, account: WatchedAccount, broker: Broker, seconds: float) -> None:
    """Read what is older than that. Prices that cannot be had hold up nothing else."""
    with db.reading(engine) as tx:
        read_at = store.now(tx)
        symbols = store.stale_symbols(tx, account.account_id, seconds, MOST_SYMBOLS)
    if not symbols:
        return
    try:
        quotes = broker.quotes(symbols)
    except BrokerError as error:
        log.info("quotes_not_read", account_id=str(account.account_id), error=type(error).__name__)
        return
    with engine.begin() as tx:
        store.save_quotes(tx, account.account_id, symbols, quotes, account.broker, read_at)


def request_prices(engine: Engine, price_max_age: timedelta, seconds: float, command: LeasedCommand) -> None:
    """Request the prices that the limits of a command need, unless they were read lately: then there are none."""
    account_id, with_exposure = command.account_id, needs_exposure(command.facts.controls)
    with engine.begin() as tx:
        symbols = unpriced_symbols(
            tx, account_id, [command.symbol], price_max_age, seconds, with_exposure=with_exposure
        )
        if symbols:
            request_quotes(tx, command.organization_id, account_id, symbols)
