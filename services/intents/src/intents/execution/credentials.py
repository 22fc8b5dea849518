"""The key pair of an account: from the vault, or for the platform's own paper broker made from the account's id."""

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Engine, text
from sqlalchemy.exc import SQLAlchemyError

import vault
from chassis import db
from intents.execution.work import Work

REMEMBER_SECONDS = 2.0
PAPER = "paper"
DERIVED = "derived"


class NoCredential(Exception):
    """The account has no credential that may be used."""


class CredentialInvalid(Exception):
    """The account's credential is known to be refused by the broker."""


class VaultDown(Exception):
    """The secret is out of reach for now."""


class KeyPair(NamedTuple):
    """`reference` names the credential and its version, so that a refused one is told from its successor."""

    reference: str
    credential_id: UUID | None
    secret: Mapping[str, str]

    def __repr__(self) -> str:
        return f"KeyPair({self.reference})"


BEST_CREDENTIAL = "status = 'active' DESC, status = 'pending' DESC, created_at DESC"
_BEST = text(f"""
    SELECT id, account_id, organization_id, status, vault_version, key_id, wrapped_key, ciphertext
    FROM accounts_api.credential WHERE account_id = :account_id ORDER BY {BEST_CREDENTIAL} LIMIT 1
""")  # noqa: S608 - a constant


def derived(account_id: UUID, paper_secret: str) -> dict[str, str]:
    """For a paper account without a credential: a pair of its own at our paper broker, known to nobody else."""
    made = hmac.new(paper_secret.encode(), account_id.bytes, hashlib.sha256).hexdigest()
    return {"key_id": str(account_id), "secret_key": made}


@dataclass
class Credentials:
    """Looks up key pairs and remembers them: until a claim names another, or else for a few seconds."""

    engine: Engine
    paper_secret: str
    keyring: vault.Keyring | None = None
    remote: vault.Vault | None = None
    _known: dict[UUID, tuple[float, KeyPair]] = field(default_factory=dict, init=False)

    def of(self, work: Work) -> KeyPair:
        """The pair of the credential that the claim found to be the account's."""
        known = self._known.get(work.account_id)
        if known and known[1].reference == (work.credential or DERIVED):
            return known[1]
        return self._look_up(work.account_id, work.broker or "")

    def pair(self, account_id: UUID, broker: str) -> KeyPair:
        now = time.monotonic()
        known = self._known.get(account_id)
        if known and known[0] > now:
            return known[1]
        return self._look_up(account_id, broker)

    def forget(self, account_id: UUID) -> None:
        self._known.pop(account_id, None)

    def _look_up(self, account_id: UUID, broker: str) -> KeyPair:
        found = self._find(account_id, broker)
        self._known[account_id] = (time.monotonic() + REMEMBER_SECONDS, found)
        return found

    def _find(self, account_id: UUID, broker: str) -> KeyPair:
        try:
            with self.engine.connect() as tx:
                row = tx.execute(_BEST, {"account_id": account_id}).one_or_none()
        except SQLAlchemyError as error:
            if not db.is_unavailable(error):
                raise
            raise VaultDown from None
        if row is None and broker == PAPER:
            return KeyPair(DERIVED, None, derived(account_id, self.paper_secret))
        if row is not None and row.status == "invalid":
            raise CredentialInvalid
        if row is None or row.status != "active":
            raise NoCredential
        return KeyPair(f"{row.id}:{row.vault_version}", row.id, self._secret(row))

    def _secret(self, row: Any) -> Mapping[str, str]:
        place = vault.Place(row.organization_id, row.account_id, row.id, row.vault_version)
        try:
            if self.remote is not None:
                return self.remote.get(place).reveal()
            if self.keyring is None or row.key_id is None:
                raise NoCredential
            envelope = vault.Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext))
            return vault.open_object(self.keyring, place, envelope).reveal()
        except vault.Unavailable:
            raise VaultDown from None
        except vault.Refused:
            raise NoCredential from None
