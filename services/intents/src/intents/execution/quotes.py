"""Prices of the symbols that an account trades, holds or limits, or that a caller requested."""

from sqlalchemy import Engine

from chassis import logs
from intents.brokers import Broker, BrokerError
from intents.execution import store
from intents.execution.model.known_orders import WatchedAccount

log = logs.get(__name__)

MOST_SYMBOLS = 200  # of one read: two requests for each hundred


def read_quotes(engine: Engine, account: WatchedAccount, broker: Broker, seconds: float) -> None:
    """Read what is older than that. Prices that cannot be had hold up nothing else."""
    with engine.connect() as tx:
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
