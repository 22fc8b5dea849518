"""Identity providers: who knows the users. One small protocol, one module each.

Deleting is identity's alone and is here. Verifying a user's token is every service's, so that half of a provider is
in the chassis: `chassis.oidc` finds the public keys, `chassis.principals.Users` reads the claims.
"""

from typing import Protocol


class NotDeleted(Exception):
    """The provider has certainly not deleted the user."""


class Unconfirmed(Exception):
    """The provider may or may not have deleted the user; a second request is safe."""


class Provider(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def vouches(self) -> bool:
        """Whether its tokens may make somebody a member who is not known here."""

    def subject(self, name: str) -> str:
        """The `sub` of the user whom people call by this name."""

    def delete_user(self, subject: str) -> None:
        """Return when the user is gone, also if they were gone before; else raise NotDeleted or Unconfirmed."""
