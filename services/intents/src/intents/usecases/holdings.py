"""Reading what an account holds and what it is worth.

From our own tables: the reconciler queries the brokers, which alone has their keys. Who wants something newer requests
a read of it, and waits for a price no longer than briefly.
"""

from collections.abc import Callable

from sqlalchemy import Connection

from chassis import db
from chassis.polling import poll
from intents import model
from intents.model.holdings import Balance, Position
from intents.model.quotes import Quote
from intents.store import broker_reads
from intents.store import holdings as store
from intents.store import quotes as quote_store
from intents.usecases.deps import Deps
from intents.usecases.reads import Reader, visible


def positions(deps: Deps, reader: Reader, charge_rows: Callable[[int], None]) -> list[Position]:
    """The open positions, charged by their number before they are read."""
    with db.reading(deps.engine) as tx:
        account = visible(tx, reader)
        charge_rows(store.position_count(tx, account.id))
        return store.positions(tx, account.id)


def balance(deps: Deps, reader: Reader) -> Balance:
    with db.reading(deps.engine) as tx:
        return store.balance(tx, visible(tx, reader).id)


def refresh(deps: Deps, reader: Reader) -> None:
    """Request that the account is read at its broker at once. The request outlives every process."""
    with deps.engine.begin() as tx:
        account = _readable_at_broker(tx, reader)
        broker_reads.request_read(tx, account.organization_id, account.id)


def quote(deps: Deps, reader: Reader, parse_symbol: Callable[[], str]) -> Quote:
    """The symbol's price; one that is too old is read again, and answered as it is if that takes too long."""
    with deps.engine.begin() as tx:
        account = _readable_at_broker(tx, reader)
        found = quote_store.find_quote(tx, account.id, parse_symbol())
        if found.was_read_within(deps.freshness.seconds):
            return found
        most = quote_store.MOST_SYMBOLS_OF_READS
        if not quote_store.request_quotes(tx, account.organization_id, account.id, [found.symbol], most):
            raise model.LimitReached(
                "The account has prices of 500 symbols, and more are read for its orders only; "
                "a price that nobody wants for a day makes room."
            )
    return _awaited(deps, account, found.symbol)


def _readable_at_broker(tx: Connection, reader: Reader) -> model.Account:
    """The account, for who may have it read: that acts on it, so an API key may in its own environment only."""
    account = visible(tx, reader)
    if reader.principal.environment not in (None, account.environment):
        raise model.Forbidden
    return account


def _awaited(deps: Deps, account: model.Account, symbol: str) -> Quote:
    """The price once it is a newer one, or as it stands when there is no more time."""

    def find() -> Quote:
        with db.reading(deps.engine) as tx:
            return quote_store.find_quote(tx, account.id, symbol)

    seconds, wait_seconds = deps.freshness
    return poll(find, lambda quote: quote.was_read_within(seconds), wait_seconds)
