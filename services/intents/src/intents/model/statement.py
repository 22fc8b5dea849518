"""The lines of a statement: a part of a log as a file that proves itself. docs/statement.md describes the file."""

import json
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from intents.model.actions import moment
from intents.model.chain import Entry
from intents.model.signed_heads import SignedHead

VERSION = 1


class Period(NamedTuple):
    """Half-open; None is open."""

    since: datetime | None
    to: datetime | None


class Statement(NamedTuple):
    """What a statement is about: the entries after `sequence`, whose hash is `hash`, up to the signed head."""

    account_id: UUID
    period: Period
    sequence: int
    hash: bytes
    closing: SignedHead


def header_line(statement: Statement) -> bytes:
    since, to = statement.period
    return _line(
        {
            "statement": VERSION,
            "account_id": str(statement.account_id),
            "from": None if since is None else moment(since),
            "to": None if to is None else moment(to),
            "opening": {"sequence": statement.sequence, "hash": statement.hash.hex()},
        }
    )


def entry_line(entry: Entry) -> bytes:
    """The content stands in it byte by byte as it was hashed."""
    place = f'"sequence":{entry.sequence},"previous_hash":"{entry.previous_hash.hex()}","hash":"{entry.hash.hex()}"'
    return b"{" + place.encode() + b',"content":' + entry.content + b"}\n"


def closing_line(head: SignedHead, sha256: str) -> bytes:
    """`sha256` is that of all lines before."""
    signed = {
        "account_id": str(head.account_id),
        "epoch": str(head.epoch),
        "sequence": head.sequence,
        "hash": head.hash.hex(),
        "signed_at": head.signed_at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "key_id": head.key_id,
        "signature": head.signature.hex(),
    }
    return _line({"signed_head": signed, "sha256": sha256})


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
