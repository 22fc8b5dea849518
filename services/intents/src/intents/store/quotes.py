"""Prices as the reconciler read them, and requests to read them."""

from uuid import UUID

from sqlalchemy import Connection, text

from intents.model import Account
from intents.model.quotes import Quote
from intents.store.broker_reads import request_read

KEPT_DAYS = 1
MOST_SYMBOLS = 1_000  # of one account

_FIND = text("""
    SELECT :symbol AS symbol, bid, ask, last, source, quoted_at, traded_at, read_at, clock_timestamp() AS now
    FROM (SELECT) one LEFT JOIN intents.quote ON account_id = :account_id AND symbol = :symbol
""")
_REQUEST = text("""
    INSERT INTO intents.quote (account_id, organization_id, symbol, requested_at)
    SELECT :account_id, :organization_id, :symbol, now()
    WHERE (SELECT count(*) FROM intents.quote WHERE account_id = :account_id) < :most
       OR EXISTS (SELECT FROM intents.quote WHERE account_id = :account_id AND symbol = :symbol)
    ON CONFLICT (account_id, symbol) DO UPDATE SET requested_at = excluded.requested_at
    RETURNING 1
""")
_PRUNE = text("""
    DELETE FROM intents.quote
    WHERE greatest(requested_at, read_at) < now() - make_interval(days => :days)
""")


def find_quote(tx: Connection, account_id: UUID, symbol: str) -> Quote:
    """What is known of the symbol's price, which may be nothing."""
    return Quote(**tx.execute(_FIND, {"account_id": account_id, "symbol": symbol}).mappings().one())


def request_quote(tx: Connection, account: Account, symbol: str) -> bool:
    """Let the price be read at once; False if the account has as many as it may have."""
    values = {"account_id": account.id, "organization_id": account.organization_id, "symbol": symbol}
    if tx.execute(_REQUEST, values | {"most": MOST_SYMBOLS}).first() is None:
        return False
    request_read(tx, account.organization_id, account.id)
    return True


def prune_quotes(tx: Connection) -> None:
    """Forget prices that nobody has wanted for a day."""
    tx.execute(_PRUNE, {"days": KEPT_DAYS})
