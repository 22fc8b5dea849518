"""The chain of hashes: each action of an account seals the one before it.

A hash covers the previous one, the sequence, and everything an action record shows except its derived `state`. So
whoever has the records, from the API or from the database, can check that none was altered, added or taken away.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

GENESIS = bytes(32)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_NOT_COVERED = ("sequence", "state", "previous_hash", "hash")


class Broken(NamedTuple):
    """The first link that does not hold."""

    sequence: int
    action_id: str | None
    reason: str


class End(NamedTuple):
    """How far the chain was followed, and what was found broken, if anything."""

    sequence: int
    hash: bytes
    checked: int
    broken: Broken | None


def digest(record: Mapping[str, Any]) -> bytes:
    """Of an action record as the API shows it."""
    covered = {name: value for name, value in record.items() if name not in _NOT_COVERED}
    return hashlib.sha256(_CANONICAL.encode(covered).encode()).digest()


def link(previous: bytes, sequence: int, content: bytes) -> bytes:
    """What the database computes when it appends, because only it knows what comes before."""
    return hashlib.sha256(previous + sequence.to_bytes(8, "big") + content).digest()


def follow(records: Iterable[Mapping[str, Any]], sequence: int = 0, previous: bytes = GENESIS) -> End:
    """Check records in ascending order, starting after the given link; stop at the first that is broken."""
    checked = 0
    for record in records:
        reason = _fault(record, sequence, previous)
        if reason:
            return End(sequence, previous, checked, Broken(int(record["sequence"]), str(record["id"]), reason))
        sequence, previous = record["sequence"], bytes.fromhex(record["hash"])
        checked += 1
    return End(sequence, previous, checked, None)


def _fault(record: Mapping[str, Any], sequence: int, previous: bytes) -> str | None:
    if record["sequence"] <= sequence:
        return "out_of_order"
    if record["previous_hash"] != previous.hex():
        return "previous_action_missing_or_altered"
    if record["hash"] != link(previous, record["sequence"], digest(record)).hex():
        return "altered"
    return None
