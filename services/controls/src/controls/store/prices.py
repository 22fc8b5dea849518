"""Prices that a preview lacks. They belong to intents, which publishes these two functions for it."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Connection, text

_UNPRICED = text("""
    SELECT * FROM intents_api.unpriced_symbols(:account_id, CAST(:symbols AS text[]), :with_exposure, :price_max_age,
                                               make_interval(secs => :read_seconds))
""")
_REQUEST = text("SELECT * FROM intents_api.request_prices(:account_id, CAST(:symbols AS text[]))")


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


def request_prices(tx: Connection, account_id: UUID, symbols: Sequence[str]) -> list[str]:
    """Let these prices be read at once; without those that are more than the account may have."""
    return list(tx.execute(_REQUEST, {"account_id": account_id, "symbols": list(symbols)}).scalars())
