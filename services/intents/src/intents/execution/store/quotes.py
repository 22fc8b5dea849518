"""Prices that the reconciler reads: of what is held, open, limited by its price or requested."""

import json
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from intents.store.statuses import TERMINAL_SQL
from tip_brokers.protocol import Quote

_REQUESTED = "requested_at IS NOT NULL AND (read_at IS NULL OR read_at < requested_at)"
_STALE = text(f"""
    SELECT symbol FROM (
        SELECT symbol FROM intents.position WHERE account_id = :account_id AND quantity <> 0
        UNION
        SELECT symbol FROM intents.intent WHERE account_id = :account_id AND status NOT IN ({TERMINAL_SQL})
        UNION
        SELECT symbol FROM controls_api.symbol_limits WHERE account_id = :account_id
        AND (max_notional IS NOT NULL OR price_collar_bps IS NOT NULL)
        UNION
        SELECT symbol FROM intents.quote WHERE account_id = :account_id AND {_REQUESTED}
    ) wanted LEFT JOIN (SELECT * FROM intents.quote WHERE account_id = :account_id) quote USING (symbol)
    WHERE read_at IS NULL OR read_at < now() - make_interval(secs => :seconds) OR {_REQUESTED}
    ORDER BY requested_at DESC NULLS LAST, read_at NULLS FIRST, symbol LIMIT :most
""")  # noqa: S608 - a constant
# A broker's clock may be ahead of ours, and a price of the future would never be too old: it is of its reading at most.
_SAVE = text("""
    INSERT INTO intents.quote AS q (account_id, symbol, bid, ask, last, source, quoted_at, traded_at, read_at)
    SELECT :account_id, wanted.symbol, bid, ask, last, CASE WHEN given.symbol IS NOT NULL THEN :source END,
           CASE WHEN quoted_at IS NOT NULL THEN least(quoted_at, CAST(:read_at AS timestamptz)) END,
           CASE WHEN traded_at IS NOT NULL THEN least(traded_at, CAST(:read_at AS timestamptz)) END, :read_at
    FROM unnest(CAST(:symbols AS text[])) AS wanted(symbol)
    LEFT JOIN jsonb_to_recordset(CAST(:quotes AS jsonb)) AS given(symbol text, bid numeric, ask numeric, last numeric,
        quoted_at timestamptz, traded_at timestamptz) USING (symbol)
    ORDER BY wanted.symbol
    ON CONFLICT (account_id, symbol) DO UPDATE SET bid = excluded.bid, ask = excluded.ask, last = excluded.last,
        source = excluded.source, quoted_at = excluded.quoted_at, traded_at = excluded.traded_at,
        read_at = excluded.read_at
    WHERE q.read_at IS NULL OR q.read_at <= excluded.read_at
""")


def stale_symbols(tx: Connection, account_id: UUID, seconds: float, most: int) -> list[str]:
    """Symbols whose price is wanted and older than that; those that somebody waits for come first."""
    values = {"account_id": account_id, "seconds": seconds, "most": most}
    return list(tx.execute(_STALE, values).scalars())


def save_quotes(
    tx: Connection, account_id: UUID, symbols: Sequence[str], quotes: Sequence[Quote], source: str, read_at: datetime
) -> None:
    """What the broker answered about these symbols; one that it has no price of has none from now on."""
    shown = json.dumps([quote._asdict() for quote in quotes], default=str)
    values = {"account_id": account_id, "symbols": list(symbols), "quotes": shown, "source": source}
    tx.execute(_SAVE, values | {"read_at": read_at})
