"""What a vault does, and the ways in which it may not."""

from typing import Protocol

from credential_vault.place import Place, Secret


class Unavailable(Exception):
    """The vault is down, sealed or out of reach; the object is not at fault."""


class Refused(Exception):
    """The vault will not do this for this object."""


class Missing(Refused):
    """There is no such object."""


class Destroyed(Refused):
    """The object was destroyed; nothing will ever be at this place again."""


class Vault(Protocol):
    """Every method may be repeated: the second time changes nothing."""

    def put(self, place: Place, secret: Secret) -> None:
        """Keep the secret. Refused when the place holds another one, Destroyed when it was destroyed."""

    def get(self, place: Place) -> Secret:
        """The secret at this place, or Missing, Destroyed, BrokenSeal."""

    def destroy(self, place: Place) -> None:
        """Remove what is there, if anything, for ever: also a worker that comes late finds the place closed."""
