"""Ed25519 for signed heads: only the signer process has the key, everybody may have its public half."""

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from intents.model import SignedHead


class HeadSigner:
    def __init__(self, key: bytes) -> None:
        """`key` is 32 random bytes."""
        self._key = Ed25519PrivateKey.from_private_bytes(key)
        self.public_key = self._key.public_key().public_bytes_raw()
        self.key_id = hashlib.sha256(self.public_key).hexdigest()[:16]

    def sign(self, head: SignedHead) -> SignedHead:
        return head._replace(signature=self._key.sign(head.message))


def signature_is_valid(head: SignedHead, public_key: bytes) -> bool:
    """Whether the signature is that of the key, and of this head."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(head.signature, head.message)
    except (InvalidSignature, ValueError):
        return False
    return True
