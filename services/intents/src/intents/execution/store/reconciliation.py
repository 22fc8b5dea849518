"""The reconciler's accounts: who watches them, which of their orders are open, and what a restore has forgotten."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.client_order_id import of_key_sql
from intents.execution.model.inputs import OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, ReadingStart, RestoredEpoch, WatchedAccount
from intents.execution.model.verdicts import OPERATOR_REQUIRED
from intents.execution.store.expressions import IN_FLIGHT, PERHAPS_SENT, UNCONFIRMED, UNENDED
from intents.store.epochs import current_epoch
from intents.store.statuses import TERMINAL_SQL

# An account is watched while something of it is open or unconfirmed or its positions are to be closed, and a while
# longer by whoever watches it already.
_LEASE = text(f"""
    WITH open AS (
        SELECT DISTINCT account_id FROM intents.intent WHERE status NOT IN ({TERMINAL_SQL})
        UNION
        SELECT DISTINCT account_id FROM intents.broker_order WHERE intent_id IS NOT NULL AND {UNENDED}
        UNION
        SELECT a.id FROM accounts_api.account a LEFT JOIN intents.broker_account k ON k.account_id = a.id
        WHERE CAST(:epoch AS uuid) IS NOT NULL AND k.epoch IS DISTINCT FROM :epoch
        UNION
        SELECT DISTINCT p.account_id FROM intents.position p JOIN accounts_api.account a ON a.id = p.account_id
        WHERE {UNCONFIRMED}
    ), wanted AS (
        SELECT account_id FROM open UNION
        SELECT account_id FROM intents.bulk_operation WHERE status = 'CLOSING' AND closing_intents IS NULL
        UNION SELECT unnest(CAST(:mine AS uuid[]))
    ), leased AS MATERIALIZED (
        SELECT account_id, k.epoch, k.lease_token = :token AS is_mine,
               k.lease_until > now() + make_interval(secs => :renew_seconds) AS is_long
        FROM wanted JOIN intents.broker_account k USING (account_id) WHERE k.lease_until > now()
    ), taken AS (
        INSERT INTO intents.broker_account AS existing (account_id, lease_token, lease_until)
        SELECT account_id, :token, now() + make_interval(secs => :seconds)
        FROM wanted LEFT JOIN leased USING (account_id) WHERE leased.account_id IS NULL OR (is_mine AND NOT is_long)
        ORDER BY account_id
        ON CONFLICT (account_id) DO UPDATE
        SET lease_token = excluded.lease_token, lease_until = excluded.lease_until
        WHERE existing.lease_until IS NULL OR existing.lease_until < now()
            OR existing.lease_token = excluded.lease_token
        RETURNING account_id, epoch
    ), mine AS (
        SELECT account_id, epoch FROM taken UNION ALL SELECT account_id, epoch FROM leased WHERE is_mine AND is_long
    )
    SELECT account.id AS account_id, account.organization_id, account.broker, account.environment, EXISTS (
        SELECT FROM intents.broker_order o WHERE o.account_id = mine.account_id AND o.unwanted_since IS NOT NULL
        AND {UNENDED}) AS is_urgent, CAST(:epoch AS uuid) IS NOT NULL AND mine.epoch IS DISTINCT FROM :epoch
        AS is_restored, mine.account_id IN (SELECT account_id FROM open) AS is_open,
        EXISTS (SELECT FROM intents.position p WHERE p.account_id = mine.account_id AND {UNCONFIRMED})
        OR EXISTS (SELECT FROM intents.broker_order o WHERE o.account_id = mine.account_id
                   AND o.broker_order_id IS NULL AND {UNENDED}) AS is_unconfirmed
    FROM mine JOIN accounts_api.account account ON account.id = mine.account_id
""")  # noqa: S608 - a constant
_RELEASE = text("UPDATE intents.broker_account SET lease_until = NULL WHERE lease_token = :token")
_CLIENT_ORDER_ID = of_key_sql("o.client_order_id")
_KNOWN_OPEN = text(f"""
    SELECT {_CLIENT_ORDER_ID} AS client_order_id, broker_order_id, status, filled_quantity, created_at,
           credential,
           (SELECT broker_account FROM intents.broker_login l
            WHERE l.account_id = o.account_id AND l.credential = o.credential) AS broker_account,
           unwanted_since IS NOT NULL AS unwanted,
           EXISTS (SELECT FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id
                   AND i.reason_code = '{OPERATOR_REQUIRED}' AND i.open_actions = 0) AS needs_operator,
           EXISTS (SELECT FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id
                   AND i.status IN ({TERMINAL_SQL})) AS of_ended,
           client_order_id AS key, {IN_FLIGHT} AS in_flight,
           coalesce((SELECT symbol FROM intents.intent i WHERE i.account_id = o.account_id AND i.id = o.intent_id), '')
               AS symbol
    FROM intents.broker_order o WHERE account_id = :account_id AND (({UNENDED}) OR {PERHAPS_SENT})
""")  # noqa: S608 - a constant
_OF_DELETED_ACCOUNTS = text(f"""
    SELECT o.account_id, {_CLIENT_ORDER_ID} AS client_order_id
    FROM (SELECT account_id, intent_id, client_order_id FROM intents.broker_order WHERE {UNENDED}) o
    JOIN intents.intent i ON i.account_id = o.account_id AND i.id = o.intent_id
    WHERE i.status NOT IN ({TERMINAL_SQL}) AND i.reason_code IS DISTINCT FROM '{OPERATOR_REQUIRED}'
      AND NOT EXISTS (SELECT FROM accounts_api.account a WHERE a.id = o.account_id)
    LIMIT 100
""")  # noqa: S608 - a constant
_RESTORED = text("SELECT epoch, started_at FROM intents_api.log_epoch WHERE epoch = :epoch AND reason <> 'INSTALLED'")
_LAST_LOGGED_BEFORE = text("""
    SELECT greatest(
        (SELECT created_at FROM intents.account_event
         WHERE account_id = :account_id AND created_at < least(:started_at, pg_postmaster_start_time())
         ORDER BY sequence DESC LIMIT 1),
        (SELECT created_at FROM intents.action
         WHERE account_id = :account_id AND created_at < least(:started_at, pg_postmaster_start_time())
         ORDER BY sequence DESC LIMIT 1))
""")
_CAUGHT_UP = text("UPDATE intents.broker_account SET epoch = :epoch WHERE account_id = :account_id")
_NOW = text("SELECT clock_timestamp()")
_BEGIN = text("""
    SELECT clock_timestamp() AS began_at,
           coalesce((SELECT last_sequence FROM intents.account_head WHERE account_id = :account_id), 0) AS sequence
""")


def lease_accounts(
    tx: Connection, token: UUID, mine: Sequence[UUID], seconds: float, epoch: UUID | None
) -> list[WatchedAccount]:
    """Take what is open or was restored and is unwatched, and keep what is mine; everything that is mine now.

    A lease is renewed when half of it is over: most of the time nothing is written.
    """
    values = {"token": token, "mine": list(mine), "seconds": seconds, "renew_seconds": seconds / 2, "epoch": epoch}
    rows = tx.execute(_LEASE, values)
    return [WatchedAccount(**row) for row in rows.mappings()]


def release_accounts(tx: Connection, token: UUID) -> None:
    tx.execute(_RELEASE, {"token": token})


def begin_reading(tx: Connection, account_id: UUID) -> ReadingStart:
    """The orders that may be at the broker. What is not among them is recorded behind the sequence, if at all."""
    began = tx.execute(_BEGIN, {"account_id": account_id}).one()
    orders = [KnownOpenOrder(**row) for row in tx.execute(_KNOWN_OPEN, {"account_id": account_id}).mappings()]
    return ReadingStart(began.began_at, began.sequence, orders)


def orders_of_deleted_accounts(tx: Connection) -> list[OutOfReach]:
    """Orders that were not seen to end, of accounts whose credentials are gone with them."""
    return [OutOfReach(**row) for row in tx.execute(_OF_DELETED_ACCOUNTS).mappings()]


def restored_epoch(tx: Connection) -> RestoredEpoch | None:
    """The current epoch, if the log has ever been restored. Begins a new one when it finds that it was just now."""
    row = tx.execute(_RESTORED, {"epoch": current_epoch(tx)}).mappings().one_or_none()
    return RestoredEpoch(**row) if row else None


def last_logged_before(tx: Connection, account_id: UUID, started_at: datetime) -> datetime | None:
    """The last moment before the restore of which the account's log knows."""
    values = {"account_id": account_id, "started_at": started_at}
    moment: datetime | None = tx.execute(_LAST_LOGGED_BEFORE, values).scalar()
    return moment


def mark_caught_up(tx: Connection, account_id: UUID, epoch: UUID) -> None:
    """What happened at the broker since the moment to which the log was restored is in the log."""
    tx.execute(_CAUGHT_UP, {"account_id": account_id, "epoch": epoch})


def now(tx: Connection) -> datetime:
    moment: datetime = tx.execute(_NOW).scalar_one()
    return moment
