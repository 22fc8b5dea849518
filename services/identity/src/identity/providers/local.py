"""The embedded provider: its users are the rows of identity's own table, its tokens are signed here."""

from dataclasses import dataclass

from identity import model_login


@dataclass(frozen=True)
class LocalProvider:
    name: str
    vouches: bool = False

    def subject(self, name: str) -> str:
        return model_login.subject_of(name)

    def delete_user(self, subject: str) -> None:
        """Nothing to do: marking the row is the deletion."""
