"""API keys: `tip_paper_` or `tip_live_`, thirty random base62 characters, six of checksum.

The checksum lets a mistyped or invented key be refused without querying the database. Only a SHA-256 of the key is ever
stored: a fast hash is right here because the key is random, not chosen by a person.
"""

import hashlib
import hmac
import re
import secrets
import zlib

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_FORM = re.compile(r"tip_(paper|live)_([0-9A-Za-z]{30})([0-9A-Za-z]{6})", re.ASCII)
_SHOWN = 8  # characters of the random part that are not secret: enough to recognise a key, and to find its row


def generate(environment: str) -> str:
    body = f"tip_{environment}_" + "".join(secrets.choice(_ALPHABET) for _ in range(30))
    return body + _checksum(body)


def is_well_formed(key: str) -> bool:
    return bool(_FORM.fullmatch(key)) and hmac.compare_digest(_checksum(key[:-6]), key[-6:])


def prefix(key: str) -> str:
    """The part of a key that may be shown and by which its row is found."""
    start = key.index("_", 4) + 1
    return key[: start + _SHOWN]


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _checksum(body: str) -> str:
    number, text = zlib.crc32(body.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        text = _ALPHABET[digit] + text
    return text
