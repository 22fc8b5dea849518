"""List cursors: opaque, signed, and bound to the list they came from.

A cursor is the sort key of the last row of a page. The signature covers what the list was about (organization, account,
query), so a cursor of one list means nothing to another.
"""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Any

from chassis.problems import Problem

_SIGNATURE_BYTES = 16
DEFAULT_LIMIT = 50
MAX_LIMIT = 500


class Cursors:
    """Writes and reads the cursors of one service."""

    def __init__(self, key: str) -> None:
        self._key = hashlib.sha256(b"cursor:" + key.encode()).digest()

    def write(self, about: tuple[str, ...], position: list[Any]) -> str:
        body = json.dumps(position, separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._sign(about, body) + body).decode().rstrip("=")

    def read(self, about: tuple[str, ...], cursor: str | None) -> list[Any] | None:
        """The position behind a cursor, None without one; 400 for anything we did not write for this list."""
        if cursor is None:
            return None
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _bad_cursor() from None
        signature, body = raw[:_SIGNATURE_BYTES], raw[_SIGNATURE_BYTES:]
        canonical = base64.urlsafe_b64encode(raw).decode().rstrip("=") == cursor
        if not canonical or not hmac.compare_digest(signature, self._sign(about, body)):
            raise _bad_cursor()
        position: list[Any] = json.loads(body)
        return position

    def _sign(self, about: tuple[str, ...], body: bytes) -> bytes:
        message = json.dumps(about).encode() + b"\n" + body
        return hmac.new(self._key, message, hashlib.sha256).digest()[:_SIGNATURE_BYTES]


def _bad_cursor() -> Problem:
    return Problem(400, "bad_cursor", "next_cursor was not made by this list.")


def limit(text: str | None) -> int:
    """The page size requested: 1 to 500, 50 when absent, 400 otherwise."""
    if text is None:
        return DEFAULT_LIMIT
    if not text.isascii() or not text.isdigit() or len(text) > 3 or not 1 <= int(text) <= MAX_LIMIT:
        raise Problem(400, "bad_limit", f"limit must be a whole number from 1 to {MAX_LIMIT}.")
    return int(text)
