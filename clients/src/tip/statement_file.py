"""Verifies a statement without the platform: nothing of its code is used here. docs/statement.md describes the file.

Every line has one form to the byte, and everything in it is computed from what came before or compared with it. So
whatever is changed, left out, added or moved does not fit.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LONGEST_LINE = 1 << 20
_HASH, _ID = rb"([0-9a-f]{64})", rb'"([0-9a-f-]{36})"'
_NUMBER = rb"(0|[1-9][0-9]{0,18})"
_MOMENT = rb'(null|"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z")'
_SIGNED_AT = rb"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})Z"
_HEADER = re.compile(
    rb'\{"statement":1,"account_id":' + _ID + rb',"from":' + _MOMENT + rb',"to":' + _MOMENT
    + rb',"opening":\{"sequence":' + _NUMBER + rb',"hash":"' + _HASH + rb'"\}\}\n'
)  # fmt: skip
_ENTRY = re.compile(
    rb'\{"sequence":' + _NUMBER + rb',"previous_hash":"' + _HASH + rb'","hash":"' + _HASH
    + rb'","content":(\{[^\n]*\})\}\n'
)  # fmt: skip
_CLOSING = re.compile(
    rb'\{"signed_head":\{"account_id":' + _ID + rb',"epoch":' + _ID + rb',"sequence":' + _NUMBER + rb',"hash":"' + _HASH
    + rb'","signed_at":"' + _SIGNED_AT + rb'","key_id":"([0-9a-f]{1,64})","signature":"([0-9a-f]{128})"\},"sha256":"'
    + _HASH + rb'"\}\n'
)  # fmt: skip


class NotVerified(Exception):
    """What is wrong with the file, and in which line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


class Verified(NamedTuple):
    """What the file proves: these entries of the log, all of them, are as they were when the head was signed.

    `since` and `to` are the period that the file says it is of; None is open.
    """

    account_id: str
    entries: int
    first_sequence: int
    last_sequence: int
    epoch: str
    signed_at: str
    key_id: str
    since: str | None
    to: str | None


class _Header(NamedTuple):
    account_id: str
    since: str | None
    to: str | None
    sequence: int
    hash: bytes


def is_statement(first_line: bytes) -> bool:
    return first_line.startswith(b'{"statement":')


def verify(given: Iterable[bytes], keys: Mapping[str, bytes]) -> Verified:
    """Follow the chain from the first line to the signed head. `keys` are public keys by their ids."""
    covered, lines = hashlib.sha256(), enumerate(given, 1)
    number, line = next(lines, (1, b""))
    header = _header(line)
    sequence, last_hash = header.sequence, header.hash
    covered.update(line)
    for number, line in lines:
        if line.startswith(b'{"signed_head":'):
            verified = _closed(number, line, header, (sequence, last_hash), covered.hexdigest(), keys)
            if next(lines, None) is not None:
                raise NotVerified(number + 1, "something follows the signed head")
            return verified
        sequence, last_hash = _followed(number, line, header, sequence, last_hash)
        covered.update(line)
    raise NotVerified(number + 1, "the file ends without a signed head")


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """With their ends. What is too long to be a line of a statement comes in parts, of which none is one."""
    while line := file.readline(LONGEST_LINE):
        yield line


def _header(line: bytes) -> _Header:
    found = _HEADER.fullmatch(line)
    if found is None:
        raise NotVerified(1, "this is not the first line of a statement")
    since, to, sequence = json.loads(found[2]), json.loads(found[3]), int(found[4])
    if since is None and sequence:
        raise NotVerified(1, "it has no `from` and does not begin with the first entry of the log")
    return _Header(found[1].decode(), since, to, sequence, bytes.fromhex(found[5].decode()))


def _followed(number: int, line: bytes, header: _Header, sequence: int, previous: bytes) -> tuple[int, bytes]:
    """The place of the entry in this line, if it is the next one and its hash is right."""
    found = _ENTRY.fullmatch(line)
    if found is None:
        raise NotVerified(number, "this is not an entry")
    if int(found[1]) != sequence + 1:
        raise NotVerified(number, f"entry {sequence + 1} is missing, or entries are not in their order")
    if found[2].decode() != previous.hex():
        raise NotVerified(number, "the entry does not follow the one before it")
    place = (sequence + 1).to_bytes(8, "big")
    computed = hashlib.sha256(previous + place + hashlib.sha256(found[4]).digest()).digest()
    if found[3].decode() != computed.hex():
        raise NotVerified(number, "the entry was altered")
    _check_content(number, found[4], header, sequence + 1)
    return sequence + 1, computed


def _check_content(number: int, content: bytes, header: _Header, sequence: int) -> None:
    try:
        entry: dict[str, Any] = json.loads(content)
        account_id, written_at = str(entry["account_id"]), str(entry["created_at"])
    except (ValueError, KeyError, RecursionError):
        raise NotVerified(number, "the entry has no account or no moment") from None
    if account_id != header.account_id:
        raise NotVerified(number, "the entry is of another account")
    if header.since and 1 < sequence == header.sequence + 1 and written_at >= header.since:
        raise NotVerified(number, "entries are missing between `from` and the first one")


def _closed(
    number: int, line: bytes, header: _Header, end: tuple[int, bytes], covered: str, keys: Mapping[str, bytes]
) -> Verified:
    found = _CLOSING.fullmatch(line)
    if found is None:
        raise NotVerified(number, "this is not a signed head")
    account_id, epoch, sequence, signed_hash, signed_at, key_id, signature, sha256 = (
        part.decode() for part in found.groups()
    )
    if sha256 != covered:
        raise NotVerified(number, "the lines before the signed head were altered")
    if end[0] == header.sequence:  # a statement has one at least: it shows that none is missing after it
        raise NotVerified(number, "it holds no entry")
    if (account_id, int(sequence), signed_hash) != (header.account_id, end[0], end[1].hex()):
        raise NotVerified(number, "the log does not end with what was signed")
    message = "\n".join(("tip signed head 1", account_id, epoch, sequence, signed_hash, f"{signed_at}+00:00")).encode()
    _check_signature(number, keys.get(key_id), bytes.fromhex(signature), message)
    first, period = header.sequence + 1, (header.since, header.to)
    return Verified(account_id, end[0] - header.sequence, first, end[0], epoch, f"{signed_at}Z", key_id, *period)


def _check_signature(number: int, key: bytes | None, signature: bytes, message: bytes) -> None:
    if key is None:
        raise NotVerified(number, "the head was signed with a key that is not among the given ones")
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        raise NotVerified(number, "the signature does not hold") from None
