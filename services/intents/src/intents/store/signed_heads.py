"""Signed heads: who signs them reads heads and links only, who verifies reads what was signed."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Row, text

from intents import model
from intents.store.account_head import GENESIS

_LINKS = """
    SELECT account_id, sequence, previous_hash, hash FROM intents.action
    UNION ALL
    SELECT account_id, sequence, previous_hash, hash FROM intents.account_event
"""
# The continuation of what was signed: its first entry names the signed hash, its last one has the head's.
_TO_SIGN = text(f"""
    SELECT h.account_id, h.organization_id, h.last_sequence, h.last_hash, clock_timestamp() AS read_at,
           first.previous_hash IS NOT DISTINCT FROM coalesce(s.hash, {GENESIS})
           AND last.hash IS NOT DISTINCT FROM h.last_hash AS continues
    FROM intents.account_head h
    LEFT JOIN intents.signed_head s ON s.account_id = h.account_id
    LEFT JOIN LATERAL (
        SELECT previous_hash FROM ({_LINKS}) l
        WHERE l.account_id = h.account_id AND l.sequence > coalesce(s.sequence, 0) AND l.hash <> ''
        ORDER BY sequence LIMIT 1
    ) first ON true
    LEFT JOIN LATERAL (
        SELECT hash FROM ({_LINKS}) l
        WHERE l.account_id = h.account_id AND l.sequence <= h.last_sequence AND l.hash <> ''
        ORDER BY sequence DESC LIMIT 1
    ) last ON true
    WHERE h.last_hash IS DISTINCT FROM coalesce(s.hash, {GENESIS}) AND NOT (h.account_id = ANY(:excluded_accounts))
    LIMIT :limit
""")  # noqa: S608 - a constant
_SIGN = text("""
    INSERT INTO intents.signed_head (account_id, organization_id, sequence, hash, epoch, signed_at, key_id, signature)
    VALUES (:account_id, :organization_id, :sequence, :hash, :epoch, :signed_at, :key_id, :signature)
    ON CONFLICT (account_id) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, epoch = excluded.epoch,
        signed_at = excluded.signed_at, key_id = excluded.key_id, signature = excluded.signature
""")
_SIGNED = text(f"""
    SELECT s.account_id, s.organization_id, s.sequence, s.hash, s.epoch, s.signed_at, s.key_id, s.signature,
           k.public_key,
           (SELECT l.hash FROM ({_LINKS}) l WHERE l.account_id = s.account_id AND l.sequence <= s.sequence
            AND l.hash <> '' ORDER BY l.sequence DESC LIMIT 1) AS logged_hash
    FROM intents.signed_head s JOIN intents.log_signing_key k USING (key_id) WHERE s.account_id = :account_id
""")  # noqa: S608 - a constant
_COLUMNS = "account_id, organization_id, sequence, hash, epoch, signed_at, key_id, signature"
# What the newest head would replace is kept if the last one that was kept is old or far behind.
_KEEP = text(f"""
    INSERT INTO intents.signed_head_history ({_COLUMNS})
    SELECT {_COLUMNS} FROM intents.signed_head signed
    WHERE account_id = :account_id AND NOT EXISTS (
        SELECT FROM (
            SELECT sequence, signed_at FROM intents.signed_head_history
            WHERE account_id = :account_id ORDER BY sequence DESC LIMIT 1
        ) kept
        WHERE kept.sequence > signed.sequence - :entries AND kept.signed_at > signed.signed_at - :period)
""")  # noqa: S608 - only our own column names
# The first that covers what is before :until and was signed after :moment; the newest if none was.
_CLOSING = text(f"""
    SELECT {_COLUMNS} FROM (
        SELECT {_COLUMNS} FROM intents.signed_head WHERE account_id = :account_id
        UNION ALL
        (SELECT {_COLUMNS} FROM intents.signed_head_history
         WHERE account_id = :account_id AND sequence >= :until AND signed_at >= :moment ORDER BY sequence LIMIT 1)
    ) signed
    ORDER BY sequence >= :until AND signed_at >= :moment DESC, sequence LIMIT 1
""")  # noqa: S608 - as above
# Moments do not rise with sequences: an entry has its moment before it waits for its place in the log. But nothing that
# a signed head covers is younger than the head, and one for every 10 000 entries is kept: the search begins there.
_SEQUENCE_BEFORE = text("""
    SELECT coalesce((
        SELECT sequence - 1 FROM (
            SELECT account_id, sequence, created_at FROM intents.action
            UNION ALL
            SELECT account_id, sequence, created_at FROM intents.account_event
        ) log
        WHERE account_id = :account_id AND created_at >= :moment AND sequence > coalesce((
            SELECT max(sequence) FROM (
                SELECT account_id, sequence, signed_at FROM intents.signed_head
                UNION ALL
                SELECT account_id, sequence, signed_at FROM intents.signed_head_history
            ) signed WHERE account_id = :account_id AND signed_at < :moment), 0)
        ORDER BY sequence LIMIT 1
    ), (SELECT last_sequence FROM intents.account_head WHERE account_id = :account_id), 0)
""")
_KEYS = text("SELECT key_id, public_key FROM intents.log_signing_key ORDER BY created_at, key_id")
_PUBLISH = text("""
    INSERT INTO intents.log_signing_key (key_id, public_key) VALUES (:key_id, :public_key) ON CONFLICT DO NOTHING
""")


class HeadToSign(NamedTuple):
    """A head that has moved on since it was signed; `continues` says whether from what was signed.

    It was read at `read_at` by the database's clock, like the moments of all entries that it covers.
    """

    account_id: UUID
    organization_id: UUID
    sequence: int
    hash: bytes
    continues: bool
    read_at: datetime


class StoredSignature(NamedTuple):
    """What was signed, the public half of the key, and the hash that the log has at that place now."""

    head: model.SignedHead
    public_key: bytes
    logged_hash: bytes | None


def heads_to_sign(tx: Connection, limit: int, excluded_accounts: Sequence[UUID]) -> list[HeadToSign]:
    values = {"limit": limit, "excluded_accounts": list(excluded_accounts)}
    return [
        HeadToSign(
            row.account_id, row.organization_id, row.last_sequence, bytes(row.last_hash), row.continues, row.read_at
        )
        for row in tx.execute(_TO_SIGN, values)
    ]


def save_signed_heads(tx: Connection, heads: Iterable[model.SignedHead]) -> None:
    tx.execute(_SIGN, [head._asdict() for head in heads])


def stored_signature(tx: Connection, account_id: UUID) -> StoredSignature | None:
    row = tx.execute(_SIGNED, {"account_id": account_id}).one_or_none()
    if row is None:
        return None
    return StoredSignature(
        _head(row), bytes(row.public_key), None if row.logged_hash is None else bytes(row.logged_hash)
    )


def keep_signed_heads(tx: Connection, account_ids: Iterable[UUID], entries: int, period: timedelta) -> None:
    """Keep the newest heads of these accounts for good, one for each period or for so many entries."""
    tx.execute(_KEEP, [{"account_id": account_id, "entries": entries, "period": period} for account_id in account_ids])


def closing_head(tx: Connection, account_id: UUID, until: int, moment: datetime | None) -> model.SignedHead | None:
    """The first signed head that covers the log up to a sequence and was signed after the moment, else the newest."""
    values = {"account_id": account_id, "until": until, "moment": moment or datetime.min.replace(tzinfo=UTC)}
    row = tx.execute(_CLOSING, values).one_or_none()
    return None if row is None else _head(row)


def sequence_before(tx: Connection, account_id: UUID, moment: datetime) -> int:
    """The sequence before the first entry of that moment or a later one; the last of the log if there is none."""
    found: int = tx.execute(_SEQUENCE_BEFORE, {"account_id": account_id, "moment": moment}).scalar_one()
    return found


def _head(row: Row[Any]) -> model.SignedHead:
    return model.SignedHead(
        row.account_id,
        row.organization_id,
        row.sequence,
        bytes(row.hash),
        row.epoch,
        row.signed_at,
        row.key_id,
        bytes(row.signature),
    )


def log_signing_keys(tx: Connection) -> dict[str, bytes]:
    return {row.key_id: bytes(row.public_key) for row in tx.execute(_KEYS)}


def publish_signing_key(tx: Connection, key_id: str, public_key: bytes) -> None:
    tx.execute(_PUBLISH, {"key_id": key_id, "public_key": public_key})
