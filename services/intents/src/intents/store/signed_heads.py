"""Signed heads: who signs them reads heads and links only, who verifies reads what was signed."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

from intents import model
from intents.store.account_head import GENESIS

# The continuation of what was signed: its first action names the signed hash, its last one has the head's.
_TO_SIGN = text(f"""
    SELECT h.account_id, h.organization_id, h.last_sequence, h.last_hash,
           first.previous_hash IS NOT DISTINCT FROM coalesce(s.hash, {GENESIS})
           AND last.hash IS NOT DISTINCT FROM h.last_hash AS continues
    FROM intents.account_head h
    LEFT JOIN intents.signed_head s ON s.account_id = h.account_id
    LEFT JOIN LATERAL (
        SELECT previous_hash FROM intents.action a
        WHERE a.account_id = h.account_id AND a.sequence > coalesce(s.sequence, 0) ORDER BY sequence LIMIT 1
    ) first ON true
    LEFT JOIN LATERAL (
        SELECT hash FROM intents.action a
        WHERE a.account_id = h.account_id AND a.sequence <= h.last_sequence ORDER BY sequence DESC LIMIT 1
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
_SIGNED = text("""
    SELECT s.account_id, s.organization_id, s.sequence, s.hash, s.epoch, s.signed_at, s.key_id, s.signature,
           k.public_key,
           (SELECT a.hash FROM intents.action a WHERE a.account_id = s.account_id AND a.sequence <= s.sequence
            ORDER BY a.sequence DESC LIMIT 1) AS logged_hash
    FROM intents.signed_head s JOIN intents.log_signing_key k USING (key_id) WHERE s.account_id = :account_id
""")
_PUBLISH = text("""
    INSERT INTO intents.log_signing_key (key_id, public_key) VALUES (:key_id, :public_key) ON CONFLICT DO NOTHING
""")


class HeadToSign(NamedTuple):
    """A head that has moved on since it was signed; `continues` says whether from what was signed."""

    account_id: UUID
    organization_id: UUID
    sequence: int
    hash: bytes
    continues: bool


class StoredSignature(NamedTuple):
    """What was signed, the public half of the key, and the hash that the log has at that place now."""

    head: model.SignedHead
    public_key: bytes
    logged_hash: bytes | None


def heads_to_sign(tx: Connection, limit: int, excluded_accounts: Sequence[UUID]) -> list[HeadToSign]:
    values = {"limit": limit, "excluded_accounts": list(excluded_accounts)}
    return [
        HeadToSign(row.account_id, row.organization_id, row.last_sequence, bytes(row.last_hash), row.continues)
        for row in tx.execute(_TO_SIGN, values)
    ]


def save_signed_heads(tx: Connection, heads: Iterable[model.SignedHead]) -> None:
    tx.execute(_SIGN, [head._asdict() for head in heads])


def stored_signature(tx: Connection, account_id: UUID) -> StoredSignature | None:
    row = tx.execute(_SIGNED, {"account_id": account_id}).one_or_none()
    if row is None:
        return None
    head = model.SignedHead(
        row.account_id,
        row.organization_id,
        row.sequence,
        bytes(row.hash),
        row.epoch,
        row.signed_at,
        row.key_id,
        bytes(row.signature),
    )
    return StoredSignature(head, bytes(row.public_key), None if row.logged_hash is None else bytes(row.logged_hash))


def publish_signing_key(tx: Connection, key_id: str, public_key: bytes) -> None:
    tx.execute(_PUBLISH, {"key_id": key_id, "public_key": public_key})
