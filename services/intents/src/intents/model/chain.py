"""The chain of hashes: each entry of an account's log seals the one before it, actions and events alike.

A hash covers the previous one, the sequence, and the content of the entry. So whoever has the entries, from the API or
from the database, can check that none was altered, added or taken away. docs/statement.md has the recipe.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

GENESIS = bytes(32)
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
_NOT_COVERED = ("sequence", "state", "previous_hash", "hash")


class Entry(NamedTuple):
    """One entry of a log, whatever it is about, with the content that its hash covers."""

    sequence: int
    id: str
    previous_hash: bytes
    hash: bytes
    content: bytes
    chained: bool = True
    """False of an event that was written before events were part of the chain."""


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


def content(record: Mapping[str, Any]) -> bytes:
    """What the hash of an action covers: its record as the API shows it, without what is derived."""
    covered = {name: value for name, value in record.items() if name not in _NOT_COVERED}
    return _CANONICAL.encode(covered).encode()


def digest(record: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(content(record)).digest()


def action_entry(record: Mapping[str, Any]) -> Entry:
    previous_hash, last_hash = (bytes.fromhex(record[name]) for name in ("previous_hash", "hash"))
    return Entry(record["sequence"], record["id"], previous_hash, last_hash, content(record))


def link(previous: bytes, sequence: int, digest: bytes) -> bytes:
    """What the database computes when it appends, because only it knows what comes before."""
    return hashlib.sha256(previous + sequence.to_bytes(8, "big") + digest).digest()


def follow(entries: Iterable[Entry], sequence: int = 0, previous: bytes = GENESIS) -> End:
    """Check entries in ascending order, starting after the given link; stop at the first that is broken."""
    checked = 0
    for entry in entries:
        broken = _fault(entry, sequence, previous)
        if broken:
            return End(sequence, previous, checked, broken)
        sequence, previous = entry.sequence, entry.hash if entry.chained else previous
        checked += 1
    return End(sequence, previous, checked, None)


def follow_excerpt(entries: Iterable[Entry]) -> End:
    """Check entries between which others may be missing: each by itself, and those that follow each other."""
    end = End(0, GENESIS, 0, None)
    for entry in entries:
        if entry.sequence <= end.sequence:
            return end._replace(broken=Broken(entry.sequence, entry.id, "out_of_order"))
        adjacent = entry.sequence == end.sequence + 1
        following = follow([entry], entry.sequence - 1, end.hash if adjacent else entry.previous_hash)
        end = following._replace(checked=end.checked + following.checked)
        if end.broken:
            return end
    return end


def _fault(entry: Entry, sequence: int, previous: bytes) -> Broken | None:
    if entry.sequence <= sequence:
        return Broken(entry.sequence, entry.id, "out_of_order")
    if entry.sequence > sequence + 1:
        return Broken(sequence + 1, None, "sequence_has_a_gap")
    if not entry.chained:
        return None
    if entry.previous_hash != previous:
        return Broken(entry.sequence, entry.id, "previous_action_missing_or_altered")
    if entry.hash != link(previous, entry.sequence, hashlib.sha256(entry.content).digest()):
        return Broken(entry.sequence, entry.id, "altered")
    return None


def check_end(end: End, until: int, head: tuple[int, bytes]) -> Broken | None:
    """What the links cannot show: that entries are missing at the end. `until` is how far they had to come."""
    last_sequence, last_hash = head
    if end.sequence == until and (until < last_sequence or end.hash == last_hash):
        return None
    reason = "last_actions_missing" if until == last_sequence else "sequence_has_a_gap"
    return Broken(end.sequence + 1, None, reason)
