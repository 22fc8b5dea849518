"""A vault in the database of whoever uses it: envelopes in a table, the key-encryption key outside of it."""

from dataclasses import dataclass
from typing import Protocol

from credential_vault.envelope import Envelope, Keyring
from credential_vault.protocol import Destroyed, Refused
from credential_vault.secret import Secret, SecretPath

PURPOSE = "vault"


class Objects(Protocol):
    """Where the envelopes are: the only part that knows about a database.

    All three may raise Unavailable. `None` in place of an envelope marks a path as destroyed.
    """

    def load(self, path: SecretPath) -> Envelope | None:
        """What is kept there; raises Missing when nothing was ever there."""

    def save(self, path: SecretPath, envelope: Envelope) -> bool:
        """Keep it if the path is new; False if something is or was there."""

    def destroy(self, path: SecretPath) -> None:
        """Forget what is there and close the path."""


@dataclass(frozen=True)
class Local:
    """The `Vault` over a table of envelopes."""

    keyring: Keyring
    objects: Objects

    def put(self, path: SecretPath, secret: Secret) -> None:
        saved = self.objects.save(path, self.keyring.seal(PURPOSE, path, secret))
        if not saved and not self.get(path).matches(secret):
            raise Refused("the path holds another secret")

    def get(self, path: SecretPath) -> Secret:
        return open_object(self.keyring, path, self.objects.load(path))

    def destroy(self, path: SecretPath) -> None:
        self.objects.destroy(path)


def open_object(keyring: Keyring, path: SecretPath, envelope: Envelope | None) -> Secret:
    """The secret in an object of the local vault, wherever the object was read."""
    if envelope is None:
        raise Destroyed
    return keyring.open(PURPOSE, path, envelope)
