"""What a vault does, and the ways in which it may not."""

from typing import Protocol

from credential_vault.secret import Secret, SecretPath


class Unavailable(Exception):
    """The vault is down, sealed or out of reach; the object is not at fault."""


class Refused(Exception):
    """The vault will not do this for this object."""


class Missing(Refused):
    """There is no such object."""


class Destroyed(Refused):
    """The object was destroyed; nothing will ever be at this path again."""


class Vault(Protocol):
    """Every method may be repeated: the second time changes nothing."""

    def put(self, path: SecretPath, secret: Secret) -> None:
        """Keep the secret. Refused when the path holds another one, Destroyed when it was destroyed."""

    def get(self, path: SecretPath) -> Secret:
        """The secret at this path, or Missing, Destroyed, BrokenSeal."""

    def destroy(self, path: SecretPath) -> None:
        """Remove what is there, if anything, for ever: also a worker that comes late finds the path closed."""
