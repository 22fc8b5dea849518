"""The embedded provider: its users are the rows of identity's own table, its tokens are signed here."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LocalProvider:
    name: str
    vouches: bool = False

    def subject(self, name: str) -> str:
        """Our own users are called by their e-mail addresses, in lower case."""
        return name.lower() if "@" in name else name

    def delete_user(self, subject: str) -> None:
        """Nothing to do: marking the row is the deletion."""
