"""Encrypting what must be stored but never read in a dump: AES-256-GCM, bound to what it belongs to."""

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
KEY_BYTES = 32


class BrokenSeal(Exception):
    """The sealed bytes were altered, belong to something else, or were sealed under another key."""


class BadKey(ValueError):
    """Not 32 bytes in base64."""


def new_key() -> bytes:
    return AESGCM.generate_key(8 * KEY_BYTES)


def decode_key(text: str) -> bytes:
    """32 bytes from their base64 form, or BadKey, which does not quote the text."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise BadKey(f"must be {KEY_BYTES} random bytes in base64")
    return key


def seal(key: bytes, plaintext: bytes, bound_to: bytes) -> bytes:
    """Encrypt; the result opens only under the same key and for the same `bound_to`."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plaintext, bound_to)


def unseal(key: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], bound_to)
    except (InvalidTag, ValueError):
        raise BrokenSeal from None
