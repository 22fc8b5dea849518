"""What the use cases need of their process."""

import hashlib
import hmac
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Engine

from chassis.outbox import Outbox
from credential_vault import Keyring, Secret, Vault


@dataclass(frozen=True)
class Deps:
    engine: Engine
    outbox: Outbox
    keyring: Keyring = field(repr=False)
    vault: Vault
    fingerprint_key: bytes = field(repr=False)
    internal_organizations: frozenset[UUID] = frozenset()
    live_rehearsal: bool = True
    most_accounts: int = 1_000
    most_credentials: int = 50

    def fingerprint(self, organization_id: UUID, secret: Secret) -> str:
        """Tells whether two secrets of an organization are the same one, and nothing else about them."""
        message = organization_id.bytes + secret.to_bytes()
        return hmac.new(self.fingerprint_key, message, hashlib.sha256).hexdigest()[:32]
