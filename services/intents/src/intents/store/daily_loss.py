"""The equity of accounts at the start of their day, and balances that were not compared with it yet."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from intents.model.daily_loss import DayEquity, NewBalance

_NEW = text("""
    SELECT b.account_id, b.organization_id, a.time_zone, b.equity, b.updated_at, l.max_daily_loss,
           d.day, d.equity AS day_start_equity, d.balance_at, d.breached, d.ends_at
    FROM intents.balance b
    JOIN accounts_api.account a ON a.id = b.account_id
    LEFT JOIN intents.day_equity d ON d.account_id = b.account_id
    LEFT JOIN controls_api.account_limits l ON l.account_id = b.account_id
    WHERE d.balance_at IS NULL OR d.balance_at < b.updated_at
    ORDER BY b.updated_at LIMIT :limit FOR UPDATE OF b SKIP LOCKED
""")
_SAVE = text("""
    INSERT INTO intents.day_equity AS kept (account_id, organization_id, day, equity, balance_at, breached, ends_at)
    SELECT * FROM jsonb_to_recordset(CAST(:judged AS jsonb)) AS given (
        account_id uuid, organization_id uuid, day date, equity numeric, balance_at timestamptz, breached boolean,
        ends_at timestamptz)
    ON CONFLICT (account_id) DO UPDATE SET day = excluded.day, equity = excluded.equity,
        balance_at = excluded.balance_at, breached = excluded.breached, ends_at = excluded.ends_at
""")


def new_balances(tx: Connection, limit: int) -> list[NewBalance]:
    """Balances that were reported since the last that was judged, the oldest first, each under lock."""
    return [_new_balance(row) for row in tx.execute(_NEW, {"limit": limit})]


def _new_balance(row: Any) -> NewBalance:
    owner = (row.account_id, row.organization_id)
    day = (row.day, row.day_start_equity, row.balance_at, row.breached, row.ends_at)
    before = DayEquity(*owner, *day) if row.day else None
    return NewBalance(*owner, row.time_zone, row.equity, row.updated_at, row.max_daily_loss, before)


def save_day_equities(tx: Connection, judged: Sequence[DayEquity]) -> None:
    rows = json.dumps([day_equity._asdict() for day_equity in judged], default=str)
    tx.execute(_SAVE, {"judged": rows})
