"""A vault in the database of whoever uses it: envelopes in a table, the key-encryption key outside of it."""

from dataclasses import dataclass
from typing import Protocol

from credential_vault.envelope import Envelope, Keyring
from credential_vault.place import Place, Secret
from credential_vault.protocol import Destroyed, Refused

PURPOSE = "vault"


class Objects(Protocol):
    """Where the envelopes are: the only part that knows about a database.

    All three may raise Unavailable. `None` in place of an envelope marks a place as destroyed.
    """

    def load(self, place: Place) -> Envelope | None:
        """What is kept there; raises Missing when nothing was ever there."""

    def save(self, place: Place, envelope: Envelope) -> bool:
        """Keep it if the place is new; False if something is or was there."""

    def destroy(self, place: Place) -> None:
        """Forget what is there and close the place."""


@dataclass(frozen=True)
class Local:
    """The `Vault` over a table of envelopes."""

    keyring: Keyring
    objects: Objects

    def put(self, place: Place, secret: Secret) -> None:
        saved = self.objects.save(place, self.keyring.seal(PURPOSE, place, secret))
        if not saved and not self.get(place).matches(secret):
            raise Refused("the place holds another secret")

    def get(self, place: Place) -> Secret:
        return open_object(self.keyring, place, self.objects.load(place))

    def destroy(self, place: Place) -> None:
        self.objects.destroy(place)


def open_object(keyring: Keyring, place: Place, envelope: Envelope | None) -> Secret:
    """The secret in an object of the local vault, wherever the object was read."""
    if envelope is None:
        raise Destroyed
    return keyring.open(PURPOSE, place, envelope)
