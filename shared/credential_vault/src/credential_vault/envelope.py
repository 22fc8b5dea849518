"""Envelope encryption: AES-256-GCM under a data key of its own, which is wrapped by a key-encryption key.

Changing the key-encryption key re-wraps data keys only; the secrets themselves are not decrypted for it.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from chassis import sealing
from credential_vault.protocol import Refused
from credential_vault.secret import Secret, SecretPath

_KEY_ID_CHARACTERS = 16


class BrokenSeal(Refused):
    """The bytes were altered, belong to another path, or were sealed under another key."""


class UnknownKey(Refused):
    """Sealed under a key-encryption key that this process was not given."""


@dataclass(frozen=True)
class Envelope:
    """A secret as it may be stored: worthless without the key-encryption key that `key_id` names."""

    key_id: str
    wrapped_key: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)


class Keyring:
    """The key-encryption key in use, and earlier ones that are still accepted while re-wrapping."""

    def __init__(self, current: bytes, earlier: Iterable[bytes] = ()) -> None:
        keys = (current, *earlier)
        if any(len(key) != sealing.KEY_BYTES for key in keys):
            raise sealing.BadKey(f"a key-encryption key must be {sealing.KEY_BYTES} random bytes")
        self.current_id = key_id(current)
        self._keys: Mapping[str, bytes] = {key_id(key): key for key in keys}

    @classmethod
    def from_text(cls, current: str, earlier: Iterable[str] = ()) -> Self:
        return cls(sealing.decode_key(current), [sealing.decode_key(key) for key in earlier])

    def derive(self, purpose: str) -> bytes:
        """A key for another use, made from the current key-encryption key and never equal to it."""
        return hmac.new(self._keys[self.current_id], f"tip-vault derive {purpose}".encode(), hashlib.sha256).digest()

    def seal(self, purpose: str, path: SecretPath, secret: Secret) -> Envelope:
        data_key = sealing.new_key()
        ciphertext = sealing.seal(data_key, secret.to_bytes(), path.binding(purpose))
        return Envelope(self.current_id, self._wrap(data_key, purpose, path), ciphertext)

    def open(self, purpose: str, path: SecretPath, envelope: Envelope) -> Secret:
        data_key = self._unwrap(purpose, path, envelope)
        return Secret.from_bytes(_unseal(data_key, envelope.ciphertext, path.binding(purpose)))

    def rewrap(self, purpose: str, path: SecretPath, envelope: Envelope) -> Envelope:
        """The same secret under the current key-encryption key."""
        data_key = self._unwrap(purpose, path, envelope)
        return Envelope(self.current_id, self._wrap(data_key, purpose, path), envelope.ciphertext)

    def _wrap(self, data_key: bytes, purpose: str, path: SecretPath) -> bytes:
        return sealing.seal(self._keys[self.current_id], data_key, path.binding(f"{purpose} key"))

    def _unwrap(self, purpose: str, path: SecretPath, envelope: Envelope) -> bytes:
        key = self._keys.get(envelope.key_id)
        if key is None:
            raise UnknownKey
        return _unseal(key, envelope.wrapped_key, path.binding(f"{purpose} key"))


def key_id(key: bytes) -> str:
    """A name for a key that reveals nothing about it."""
    return hashlib.sha256(b"tip-vault key id " + key).hexdigest()[:_KEY_ID_CHARACTERS]


def _unseal(key: bytes, sealed: bytes, bound_to: bytes) -> bytes:
    try:
        return sealing.unseal(key, sealed, bound_to)
    except sealing.BrokenSeal:
        raise BrokenSeal from None
