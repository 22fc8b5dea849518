"""The embedded provider: its users are the rows of identity's own table, its tokens are signed here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalProvider:
    name: str
    vouches: bool = False

    def delete_user(self, subject: str) -> None:
        """Nothing to do: marking the row is the deletion."""
