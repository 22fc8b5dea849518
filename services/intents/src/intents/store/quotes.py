"""Prices as the reconciler read them, and requests to read them."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection, text

from intents.model.quotes import Quote

KEPT_DAYS = 1
MOST_SYMBOLS = 1_000  # of one account
MOST_SYMBOLS_OF_READS = 500  # the rest is for orders; the same in `intents_api.request_prices`, for previews

_FIND = text("""
    SELECT :symbol AS symbol, bid, ask, last, source, quoted_at, traded_at, read_at, clock_timestamp() AS now
    FROM (SELECT) one LEFT JOIN intents.quote ON account_id = :account_id AND symbol = :symbol
""")
_UNPRICED = text("""
    SELECT * FROM intents_api.unpriced_symbols(:account_id, CAST(:symbols AS text[]), :with_exposure, :price_max_age,
                                               make_interval(secs => :read_seconds))
""")
_REQUEST = text("SELECT * FROM intents.request_prices(:organization_id, :account_id, CAST(:symbols AS text[]), :most)")
_PRUNE = text("""
    DELETE FROM intents.quote
    WHERE greatest(requested_at, read_at) < now() - make_interval(days => :days)
""")


def find_quote(tx: Connection, account_id: UUID, symbol: str) -> Quote:
    """What is known of the symbol's price, which may be nothing."""
    return Quote(**tx.execute(_FIND, {"account_id": account_id, "symbol": symbol}).mappings().one())


def unpriced_symbols(
    tx: Connection,
    account_id: UUID,
    symbols: Sequence[str],
    price_max_age: timedelta,
    read_seconds: float,
    *,
    with_exposure: bool = False,
) -> list[str]:
    """Those without a usable price that were not read for so long; with exposure also of all that is held or open."""
    values = {"account_id": account_id, "symbols": list(symbols), "with_exposure": with_exposure}
    values |= {"price_max_age": price_max_age, "read_seconds": read_seconds}
    return list(tx.execute(_UNPRICED, values).scalars())


def request_quotes(
    tx: Connection, organization_id: UUID, account_id: UUID, symbols: Sequence[str], most: int = MOST_SYMBOLS
) -> list[str]:
    """Let these prices be read at once; without those that would be more than so many of the account."""
    values = {"organization_id": organization_id, "account_id": account_id, "symbols": list(symbols), "most": most}
    return list(tx.execute(_REQUEST, values).scalars())


def prune_quotes(tx: Connection) -> None:
    """Forget prices that nobody has wanted for a day."""
    tx.execute(_PRUNE, {"days": KEPT_DAYS})
