"""The only SQL: what identity, accounts and intents publish for the gateway."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, Connection, Row, Text, Uuid, bindparam, text

from chassis.principals import Bounds
from stream_gateway.model import Account, Event

_COLUMNS = (
    "e.account_id, e.sequence, e.event_id, e.type, e.occurred_at, e.traceparent, e.payload, e.previous_hash, e.hash"
)
# In one statement with the epoch, so that both are of one moment; a row without an event has the epoch alone.
_AFTER = text(f"""
    WITH current AS MATERIALIZED (SELECT CAST(intents_api.current_log_epoch() AS text) AS epoch)
    SELECT current.epoch, {_COLUMNS}
    FROM current LEFT JOIN (
        unnest(:accounts, :positions) AS wanted (account_id, position)
        CROSS JOIN LATERAL (
            SELECT * FROM intents_api.event_log
            WHERE account_id = wanted.account_id AND sequence > wanted.position
            ORDER BY sequence LIMIT :limit
        ) e
    ) ON true
    ORDER BY e.account_id, e.sequence
""").bindparams(  # noqa: S608 - only our own column names
    bindparam("accounts", type_=ARRAY(Uuid)), bindparam("positions", type_=ARRAY(BigInteger))
)
_BETWEEN = text(f"""
    SELECT {_COLUMNS} FROM intents_api.event_log e
    WHERE account_id = :account_id AND sequence > :after AND sequence <= :until
    ORDER BY sequence
""")  # noqa: S608 - as above
_OCCURRED_AT = text(
    "SELECT occurred_at FROM intents_api.event_log WHERE account_id = :account_id AND sequence = :sequence"
)
_EPOCH = text("SELECT CAST(intents_api.current_log_epoch() AS text)")
_ACCOUNT = text("""
    WITH current AS MATERIALIZED (SELECT CAST(intents_api.current_log_epoch() AS text) AS epoch)
    SELECT a.id, a.organization_id, coalesce(h.last_sequence, 0) AS head, current.epoch
    FROM current, accounts_api.account a LEFT JOIN intents_api.account_head h ON h.account_id = a.id
    WHERE a.id = :id
""")
_EXISTING = text("SELECT id FROM accounts_api.account WHERE id = ANY(:ids)").bindparams(
    bindparam("ids", type_=ARRAY(Uuid))
)
_HEADS = text("""
    SELECT account_id, last_sequence FROM intents_api.account_head WHERE account_id = ANY(:ids)
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)))
_KEYS = text("SELECT id, permissions, bounds FROM identity_api.usable_api_key WHERE id = ANY(:ids)").bindparams(
    bindparam("ids", type_=ARRAY(Uuid))
)
# For many what chassis.authentication reads for one.
_USERS = text("""
    SELECT wanted.subject, wanted.external_id, u.id AS user_id, u.deleted, o.id AS organization_id,
           m.user_id IS NOT NULL AS decided, m.role, CAST('{}' AS text[]) AS entitlements
    FROM unnest(CAST(:subjects AS text[]), CAST(:external_ids AS text[])) AS wanted (subject, external_id)
    LEFT JOIN identity_api.app_user u ON u.provider = :provider AND u.subject = wanted.subject
    LEFT JOIN identity_api.organization o
           ON o.provider = :provider AND o.external_id = wanted.external_id AND NOT o.disabled
    LEFT JOIN identity_api.membership m ON m.user_id = u.id AND m.organization_id = o.id
""").bindparams(bindparam("subjects", type_=ARRAY(Text)), bindparam("external_ids", type_=ARRAY(Text)))
_SERVICE_ACCOUNTS = text("""
    SELECT wanted.client_id, wanted.organization_id AS named, a.scopes, o.id AS organization_id,
           CAST('{}' AS text[]) AS entitlements
    FROM unnest(CAST(:client_ids AS text[]), CAST(:organizations AS uuid[])) AS wanted (client_id, organization_id)
    JOIN identity_api.service_account a ON a.client_id = wanted.client_id AND NOT a.disabled
    LEFT JOIN identity_api.organization o ON o.id = wanted.organization_id AND NOT o.disabled
""").bindparams(bindparam("client_ids", type_=ARRAY(Text)), bindparam("organizations", type_=ARRAY(Uuid)))


def current_epoch(tx: Connection) -> str:
    """The epoch of whatever else this transaction reads; to be committed, because it begins one after a restore."""
    epoch: str = tx.execute(_EPOCH).scalar_one()
    return epoch


def account(tx: Connection, account_id: UUID) -> Account | None:
    """In one statement with the epoch, which is to be committed as above."""
    row = tx.execute(_ACCOUNT, {"id": account_id}).one_or_none()
    return Account(row.id, row.organization_id, row.head, row.epoch) if row else None


def existing(tx: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Those of the accounts that are still there."""
    return set(tx.execute(_EXISTING, {"ids": list(ids)}).scalars())


def heads(tx: Connection, ids: Iterable[UUID]) -> dict[UUID, int]:
    """The newest sequence of every account that has one."""
    return {row[0]: row[1] for row in tx.execute(_HEADS, {"ids": list(ids)})}


def after(tx: Connection, positions: Mapping[UUID, int], limit: int) -> tuple[str, list[Event]]:
    """The epoch, and what each account's log has after its position, in order, up to `limit` for each."""
    values = {"accounts": list(positions), "positions": list(positions.values()), "limit": limit}
    rows = tx.execute(_AFTER, values).all()
    return rows[0].epoch, [Event(*row[1:]) for row in rows if row.account_id is not None]


def between(tx: Connection, account_id: UUID, after: int, until: int) -> list[Event]:
    values = {"account_id": account_id, "after": after, "until": until}
    return [Event(*row) for row in tx.execute(_BETWEEN, values)]


def occurred_at(tx: Connection, account_id: UUID, sequence: int) -> datetime | None:
    """When the event with this sequence happened, or None if the log has none."""
    found: datetime | None = tx.execute(_OCCURRED_AT, {"account_id": account_id, "sequence": sequence}).scalar()
    return found


class UsableKey(NamedTuple):
    permissions: frozenset[str]
    bounds: Bounds


def usable_keys(tx: Connection, ids: Sequence[UUID]) -> dict[UUID, UsableKey]:
    """Those API keys that still count, all in one read."""
    return {
        row.id: UsableKey(frozenset(row.permissions), Bounds.from_json(row.bounds))
        for row in tx.execute(_KEYS, {"ids": list(ids)})
    }


def users(
    tx: Connection, provider: str, named: Iterable[tuple[str, str | None]]
) -> dict[tuple[str, str | None], Row[Any]]:
    """Each user in the organization that its token names, all in one read."""
    distinct = list(set(named))
    values = {
        "provider": provider,
        "subjects": [subject for subject, _ in distinct],
        "external_ids": [external_id for _, external_id in distinct],
    }
    return {(row.subject, row.external_id): row for row in tx.execute(_USERS, values)}


def service_accounts(
    tx: Connection, named: Iterable[tuple[str, UUID | None]]
) -> dict[tuple[str, UUID | None], Row[Any]]:
    """Those service accounts that still count, each with the organization it names, all in one read."""
    distinct = list(set(named))
    values = {
        "client_ids": [client_id for client_id, _ in distinct],
        "organizations": [organization_id for _, organization_id in distinct],
    }
    return {(row.client_id, row.named): row for row in tx.execute(_SERVICE_ACCOUNTS, values)}
