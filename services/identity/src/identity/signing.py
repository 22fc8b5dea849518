"""Making and using the keys that sign our tokens. The private half is sealed wherever it is kept."""

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jose import jwk, jwt

from chassis import sealing
from identity import model

ALGORITHM = "RS256"
_KEY_BITS = 2048


@dataclass(frozen=True)
class Signer:
    key_encryption_keys: Sequence[bytes] = field(repr=False)
    """The first one seals; all of them open, while a change of key is under way. None in a process that never signs."""
    issuer: str
    audience: str
    lifetime_s: int
    _opened: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def generate(self) -> tuple[str, str, Mapping[str, Any], bytes]:
        """(kid, algorithm, public JWK, sealed private key) of a new key."""
        kid = secrets.token_hex(8)
        private = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
        public = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        public_jwk = {**jwk.construct(public.decode(), ALGORITHM).to_dict(), "kid": kid, "use": "sig"}
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return kid, ALGORITHM, _as_text(public_jwk), self.seal(kid, pem)

    def sign(self, key: model.SigningKey, claims: Mapping[str, Any], *, lifetime_s: int | None = None) -> str:
        now = int(time.time())
        usual = {
            "iss": self.issuer,
            "aud": self.audience,
            "iat": now,
            "exp": now + (self.lifetime_s if lifetime_s is None else lifetime_s),
            "jti": secrets.token_hex(16),
        }
        return jwt.encode({**usual, **claims}, self._open(key), algorithm=key.algorithm, headers={"kid": key.kid})

    def reseal(self, bound_to: str, sealed: bytes) -> bytes | None:
        """The same sealed under the current key-encryption key; None if it is already."""
        sealed_under, plaintext = self._unseal(bound_to, sealed)
        return None if sealed_under == self.key_encryption_keys[0] else self.seal(bound_to, plaintext)

    def seal(self, bound_to: str, plaintext: bytes) -> bytes:
        """Also for other secrets that are kept in identity's database: they open only for what they are bound to."""
        return sealing.seal(self.key_encryption_keys[0], plaintext, bound_to.encode())

    def unseal(self, bound_to: str, sealed: bytes) -> bytes:
        return self._unseal(bound_to, sealed)[1]

    def _open(self, key: model.SigningKey) -> Any:
        if key.kid not in self._opened:
            self._opened[key.kid] = jwk.construct(self.unseal(key.kid, key.sealed_key).decode(), key.algorithm)
        return self._opened[key.kid]

    def _unseal(self, bound_to: str, sealed: bytes) -> tuple[bytes, bytes]:
        """The key-encryption key that opens it, and what is inside."""
        for candidate in self.key_encryption_keys:
            with suppress(sealing.BrokenSeal):
                return candidate, sealing.unseal(candidate, sealed, bound_to.encode())
        raise sealing.BrokenSeal


def _as_text(public_jwk: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.decode() if isinstance(value, bytes) else str(value) for name, value in public_jwk.items()}
