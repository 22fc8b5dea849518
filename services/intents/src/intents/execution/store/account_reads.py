"""Which accounts are due to be read at their brokers, and at which pace each broker is read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from intents.execution.model.read_schedule import Pace
from intents.execution.store.expressions import NOT_REQUESTED

# Every account that is enabled has its time; one that is disabled or deleted has none.
_ENROLL = text("""
    INSERT INTO intents.broker_account AS k (account_id, organization_id, next_read_at)
    SELECT a.id, a.organization_id, now() FROM accounts_api.account a
    LEFT JOIN intents.broker_account known ON known.account_id = a.id
    WHERE NOT a.disabled AND known.next_read_at IS NULL ORDER BY a.id
    ON CONFLICT (account_id) DO UPDATE SET next_read_at = excluded.next_read_at WHERE k.next_read_at IS NULL
""")
_RETIRE = text("""
    UPDATE intents.broker_account k SET next_read_at = NULL WHERE next_read_at IS NOT NULL
    AND NOT EXISTS (SELECT FROM accounts_api.account a WHERE a.id = k.account_id AND NOT a.disabled)
""")
_MAKE_PACES = text("""
    INSERT INTO intents.broker_pace (broker, paid_until)
    SELECT broker, now() FROM unnest(CAST(:brokers AS text[])) AS broker ORDER BY broker ON CONFLICT DO NOTHING
""")
_PACES = text("""
    SELECT broker, paid_until FROM intents.broker_pace WHERE broker = ANY(CAST(:brokers AS text[]))
    ORDER BY broker FOR UPDATE
""")
_SAVE_PACE = text("UPDATE intents.broker_pace SET paid_until = :paid_until WHERE broker = :broker")
_IS_DUE = """k.next_read_at <= now() AND (k.lease_until IS NULL OR k.lease_until < now() OR k.lease_token = :token)"""
# Organizations take turns. An account that another reconciler leases is read by that one.
_DUE = text(f"""
    SELECT account_id, broker FROM (
        SELECT k.account_id, a.broker, k.next_read_at,
               row_number() OVER (PARTITION BY a.broker, k.organization_id ORDER BY k.next_read_at) AS turn
        FROM intents.broker_account k JOIN accounts_api.account a ON a.id = k.account_id
        WHERE {_IS_DUE}
    ) due ORDER BY turn, next_read_at LIMIT :most
""")  # noqa: S608 - a constant
_BEGIN = text(f"""
    WITH locked AS MATERIALIZED (
        SELECT account_id FROM intents.broker_account k
        WHERE k.account_id = ANY(CAST(:account_ids AS uuid[])) AND {_IS_DUE}
        ORDER BY account_id FOR UPDATE
    )
    UPDATE intents.broker_account k
    SET lease_token = :token, lease_until = now() + make_interval(secs => :lease_seconds), attempted_at = now(),
        next_read_at = now() + make_interval(secs => :retry_seconds)
    FROM locked WHERE k.account_id = locked.account_id
    RETURNING k.account_id
""")  # noqa: S608 - a constant
_FAILURES = text("SELECT read_failures FROM intents.broker_account WHERE account_id = :account_id")
# A request that came while the account was being read stands.
_POSTPONE = text(f"""
    UPDATE intents.broker_account
    SET read_failures = least(read_failures + 1, 1000),
        next_read_at = CASE WHEN {NOT_REQUESTED} THEN now() + make_interval(secs => :seconds) ELSE next_read_at END
    WHERE account_id = :account_id
""")  # noqa: S608 - a constant
_RELEASE = text("""
    UPDATE intents.broker_account SET lease_until = NULL WHERE account_id = :account_id AND lease_token = :token
""")


class DueRead(NamedTuple):
    account_id: UUID
    broker: str


def enroll_accounts(tx: Connection) -> None:
    """Give every enabled account a time to be read, and take it from all others."""
    tx.execute(_ENROLL)
    tx.execute(_RETIRE)


def lock_paces(tx: Connection, brokers: Iterable[str]) -> Mapping[str, Pace]:
    """By broker, until the transaction ends: reconcilers take turns."""
    values = {"brokers": list(brokers)}
    tx.execute(_MAKE_PACES, values)
    return {row.broker: Pace(row.paid_until) for row in tx.execute(_PACES, values)}


def save_pace(tx: Connection, broker: str, pace: Pace) -> None:
    tx.execute(_SAVE_PACE, {"broker": broker, "paid_until": pace.paid_until})


def due_reads(tx: Connection, token: UUID, most: int) -> list[DueRead]:
    return [DueRead(*row) for row in tx.execute(_DUE, {"token": token, "most": most})]


def begin_reads(
    tx: Connection, token: UUID, account_ids: Sequence[UUID], lease_seconds: float, retry_seconds: float
) -> list[UUID]:
    """Lease those of the accounts that are still due. One whose read is never finished is so after `retry_seconds`."""
    seconds = {"lease_seconds": lease_seconds, "retry_seconds": retry_seconds}
    return list(tx.execute(_BEGIN, {"token": token, "account_ids": list(account_ids), **seconds}).scalars())


def read_failures(tx: Connection, account_id: UUID) -> int:
    """How many reads of the account have failed in a row."""
    return tx.execute(_FAILURES, {"account_id": account_id}).scalar() or 0


def postpone_read(tx: Connection, account_id: UUID, seconds: float) -> None:
    """After one more that has failed."""
    tx.execute(_POSTPONE, {"account_id": account_id, "seconds": seconds})


def release_account(tx: Connection, token: UUID, account_id: UUID) -> None:
    tx.execute(_RELEASE, {"token": token, "account_id": account_id})
