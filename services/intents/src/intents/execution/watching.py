"""SQL of the reconciler: whose account is watched by whom, what we believe is open, what the broker says is held."""

import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Engine, text

from intents.brokers import Balance, Position
from intents.execution.client_order_id import of_key_sql
from intents.execution.model.inputs import OutOfReach
from intents.execution.model.locked_intent import MISSING
from intents.execution.model.verdicts import OPERATOR_REQUIRED
from intents.store.account_head import LOCK_EXISTING, take_sequences
from intents.store.epochs import current_epoch
from intents.store.statuses import TERMINAL_SQL

MISSING_HOURS = 24  # how long what was given up is looked for: as long as an order of the day can live


class Watched(NamedTuple):
    account_id: UUID
    organization_id: UUID
    broker: str
    environment: str
    is_urgent: bool
    """Whether an order is open there that no intent asks for."""
    is_restored: bool
    """Whether the log was restored to an earlier state since the account was last compared with its broker."""


class Believed(NamedTuple):
    """An order that we have not seen the end of."""

    client_order_id: str
    broker_order_id: str | None
    """None of what was given up: perhaps it never got there."""
    status: str
    filled_quantity: Decimal
    created_at: datetime
    credential: str | None = None
    broker_account: str | None = None
    unwanted: bool = False
    needs_operator: bool = False
    """Whether its intent says that nobody can query it."""
    of_ended: bool = False
    """Whether its intent has ended."""


# Not yet ended as far as we know, or given up not long ago. What is being sent is the executor's.
UNENDED = f"""
    status NOT IN ('FILLED', 'CANCELED', 'EXPIRED', 'REJECTED', 'REPLACED')
    AND (broker_order_id IS NOT NULL
         OR (status = '{MISSING}' AND updated_at > now() - interval '{MISSING_HOURS} hours'))
"""
# Of a position: the broker has not said how it stands since it moved.
UNSAID = "(reconciled_at IS NULL OR reconciled_at < updated_at)"
# An account is watched while something of it is open or unsaid, and a while longer by whoever watches it already.
_WATCH = text(f"""
    WITH open AS (
        SELECT DISTINCT account_id FROM intents.intent WHERE status NOT IN ({TERMINAL_SQL})
        UNION
        SELECT DISTINCT account_id FROM intents.broker_order WHERE intent_id IS NOT NULL AND {UNENDED}
        UNION
        SELECT a.id FROM accounts_api.account a LEFT JOIN intents.broker_account k ON k.account_id = a.id
        WHERE CAST(:epoch AS uuid) IS NOT NULL AND k.epoch IS DISTINCT FROM :epoch
        UNION
        SELECT DISTINCT p.account_id FROM intents.position p JOIN accounts_api.account a ON a.id = p.account_id
        WHERE {UNSAID}
        UNION
        SELECT unnest(CAST(:mine AS uuid[]))
    ), taken AS (
        INSERT INTO intents.broker_account AS known (account_id, lease_token, lease_until)
        SELECT account_id, :token, now() + make_interval(secs => :seconds) FROM open ORDER BY account_id
        ON CONFLICT (account_id) DO UPDATE
        SET lease_token = excluded.lease_token, lease_until = excluded.lease_until
        WHERE known.lease_until IS NULL OR known.lease_until < now() OR known.lease_token = excluded.lease_token
        RETURNING account_id, epoch
    )
    SELECT account.id, account.organization_id, account.broker, account.environment, EXISTS (
        SELECT FROM intents.broker_order o WHERE o.account_id = taken.account_id AND o.unwanted_since IS NOT NULL
        AND {UNENDED}), CAST(:epoch AS uuid) IS NOT NULL AND taken.epoch IS DISTINCT FROM :epoch
    FROM taken JOIN accounts_api.account account ON account.id = taken.account_id
""")  # noqa: S608 - a constant
_RELEASE = text("UPDATE intents.broker_account SET lease_until = NULL WHERE lease_token = :token")
_BELIEVED = text(f"""
    SELECT {of_key_sql("client_order_id")}, broker_order_id, status, filled_quantity, created_at, credential,
           (SELECT broker_account FROM intents.broker_login l
            WHERE l.account_id = o.account_id AND l.credential = o.credential), unwanted_since IS NOT NULL,
           EXISTS (SELECT FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id
                   AND i.reason_code = '{OPERATOR_REQUIRED}' AND i.open_actions = 0),
           EXISTS (SELECT FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id
                   AND i.status IN ({TERMINAL_SQL}))
    FROM intents.broker_order o WHERE account_id = :account_id AND {UNENDED}
""")  # noqa: S608 - a constant
_NOW = text("SELECT clock_timestamp()")
_NEWS_OF_ACCOUNT = """
    SELECT CAST(:account_id AS uuid) AS account_id, NULL::uuid AS organization_id, count(*) AS sequences
    FROM news HAVING count(*) > 0
"""
# What the broker does not show any more is flat. What a fill has changed since the broker was asked stays: the next
# look will see both. Told is what differs, and what has moved since the broker last said how it stands.
_POSITIONS = text(f"""
    WITH before AS MATERIALIZED (
        SELECT symbol, quantity, {UNSAID} AS unsaid
        FROM intents.position WHERE account_id = :account_id
    ), given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:positions AS jsonb)) AS given(symbol text, quantity numeric,
            last_price numeric, average_entry_price numeric, market_value numeric, unrealized_profit numeric)
        UNION ALL
        SELECT symbol, 0, NULL, NULL, 0, 0 FROM before
        WHERE (quantity <> 0 OR unsaid) AND NOT (symbol = ANY(:symbols))
    ), saved AS (
        INSERT INTO intents.position AS held (account_id, symbol, quantity, last_price, updated_at,
            average_entry_price, market_value, unrealized_profit, reconciled_at)
        SELECT :account_id, symbol, quantity, last_price, :asked_at, average_entry_price, market_value,
               unrealized_profit, :asked_at
        FROM given ORDER BY symbol
        ON CONFLICT (account_id, symbol) DO UPDATE SET quantity = excluded.quantity,
            last_price = coalesce(excluded.last_price, held.last_price),
            average_entry_price = excluded.average_entry_price, market_value = excluded.market_value,
            unrealized_profit = excluded.unrealized_profit, reconciled_at = excluded.reconciled_at
            WHERE held.updated_at <= excluded.reconciled_at
        RETURNING symbol, quantity, last_price
    ), news AS (
        SELECT saved.*, row_number() OVER (ORDER BY symbol) AS place FROM saved LEFT JOIN before USING (symbol)
        WHERE before.unsaid OR saved.quantity <> coalesce(before.quantity, 0)
    ), head AS (
        {take_sequences(_NEWS_OF_ACCOUNT)}
    )
    INSERT INTO intents.broker_event (account_id, sequence, id, type, payload, occurred_at)
    SELECT :account_id, head.last_sequence - (SELECT count(*) FROM news) + place, gen_random_uuid(), 'BROKER_POSITION',
           jsonb_build_object('symbol', symbol, 'quantity', quantity::text, 'last_price', last_price::text), :asked_at
    FROM news CROSS JOIN head
    RETURNING sequence
""")  # noqa: S608 - a constant
_BALANCE = text("""
    INSERT INTO intents.balance (account_id, currency, cash, equity, buying_power, updated_at)
    VALUES (:account_id, :currency, :cash, :equity, :buying_power, :asked_at)
    ON CONFLICT (account_id) DO UPDATE SET currency = excluded.currency, cash = excluded.cash,
        equity = excluded.equity, buying_power = excluded.buying_power, updated_at = excluded.updated_at
""")
_LOOKED = text("UPDATE intents.broker_account SET looked_at = :asked_at WHERE account_id = :account_id")


class Restored(NamedTuple):
    """The epoch of a log that was restored to an earlier state."""

    epoch: UUID
    started_at: datetime


_RESTORED = text("SELECT epoch, started_at FROM intents_api.log_epoch WHERE epoch = :epoch AND reason <> 'INSTALLED'")
_REMEMBERED_UNTIL = text("""
    SELECT greatest(
        (SELECT created_at FROM intents.broker_event
         WHERE account_id = :account_id AND created_at < least(:started_at, pg_postmaster_start_time())
         ORDER BY sequence DESC LIMIT 1),
        (SELECT created_at FROM intents.action
         WHERE account_id = :account_id AND created_at < least(:started_at, pg_postmaster_start_time())
         ORDER BY sequence DESC LIMIT 1))
""")
_CAUGHT_UP = text("UPDATE intents.broker_account SET epoch = :epoch WHERE account_id = :account_id")


def restored(engine: Engine) -> Restored | None:
    """The current epoch, if the log has ever been restored."""
    with engine.begin() as tx:
        row = tx.execute(_RESTORED, {"epoch": current_epoch(tx)}).one_or_none()
        return Restored(*row) if row else None


def remembered_until(engine: Engine, account_id: UUID, started_at: datetime) -> datetime | None:
    """The last moment before the restore of which the account's log knows."""
    with engine.connect() as tx:
        moment: datetime | None = tx.execute(
            _REMEMBERED_UNTIL, {"account_id": account_id, "started_at": started_at}
        ).scalar()
        return moment


def caught_up(engine: Engine, account_id: UUID, epoch: UUID) -> None:
    """What happened at the broker since the moment to which the log was restored is in the log."""
    with engine.begin() as tx:
        tx.execute(_CAUGHT_UP, {"account_id": account_id, "epoch": epoch})


def watch(engine: Engine, token: UUID, mine: Sequence[UUID], seconds: float, epoch: UUID | None) -> list[Watched]:
    """Take what is open or was restored and is unwatched, and keep what is mine; everything that is mine now."""
    with engine.begin() as tx:
        rows = tx.execute(_WATCH, {"token": token, "mine": list(mine), "seconds": seconds, "epoch": epoch})
        return [Watched(*row) for row in rows]


_OF_DELETED_ACCOUNTS = text(f"""
    SELECT o.account_id, {of_key_sql("o.client_order_id")}
    FROM (SELECT account_id, intent_id, client_order_id FROM intents.broker_order WHERE {UNENDED}) o
    JOIN intents.intent i ON i.account_id = o.account_id AND i.id = o.intent_id
    WHERE i.status NOT IN ({TERMINAL_SQL}) AND i.reason_code IS DISTINCT FROM '{OPERATOR_REQUIRED}'
      AND NOT EXISTS (SELECT FROM accounts_api.account a WHERE a.id = o.account_id)
    LIMIT 100
""")  # noqa: S608 - a constant


def orders_of_deleted_accounts(engine: Engine) -> list[OutOfReach]:
    """Orders that were not seen to end, of accounts whose credentials are gone with them."""
    with engine.connect() as tx:
        return [OutOfReach(*row) for row in tx.execute(_OF_DELETED_ACCOUNTS)]


def release(engine: Engine, token: UUID) -> None:
    with engine.begin() as tx:
        tx.execute(_RELEASE, {"token": token})


def believed_open(engine: Engine, account_id: UUID) -> list[Believed]:
    with engine.connect() as tx:
        return [Believed(*row) for row in tx.execute(_BELIEVED, {"account_id": account_id})]


def now(engine: Engine) -> datetime:
    with engine.connect() as tx:
        moment: datetime = tx.execute(_NOW).scalar_one()
        return moment


def save_holdings(
    engine: Engine, account_id: UUID, positions: Sequence[Position], balance: Balance, asked_at: datetime
) -> int | None:
    """How far the account's log has come, if there was anything to tell."""
    values: dict[str, Any] = {"account_id": account_id, "asked_at": asked_at}
    shown = json.dumps([one._asdict() for one in positions], default=str)
    with engine.begin() as tx:
        tx.execute(LOCK_EXISTING, values)  # heads before positions, as everywhere
        told = tx.execute(_POSITIONS, values | {"positions": shown, "symbols": [one.symbol for one in positions]})
        sequences = [row.sequence for row in told]
        tx.execute(_BALANCE, values | balance._asdict())
        tx.execute(_LOOKED, values)
    return max(sequences, default=None)
