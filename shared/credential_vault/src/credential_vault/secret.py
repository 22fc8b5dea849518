"""What a secret is and whose it is."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self
from uuid import UUID


@dataclass(frozen=True)
class SecretPath:
    """Where one version of one credential's secret is kept."""

    organization_id: UUID
    account_id: UUID
    credential_id: UUID
    version: int

    def binding(self, purpose: str) -> bytes:
        """The additional data of everything encrypted for this path; no two paths or purposes share it."""
        parts = (purpose, str(self.organization_id), str(self.account_id), str(self.credential_id), self.version)
        return json.dumps(parts, separators=(",", ":")).encode()


class Secret:
    """A broker's secret, which shows itself only through `reveal`."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = dict(fields)

    def reveal(self) -> dict[str, str]:
        return dict(self._fields)

    def to_bytes(self) -> bytes:
        return json.dumps(self._fields, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        return cls(json.loads(raw))

    def matches(self, other: "Secret") -> bool:
        """Whether both are the same, in a time that does not depend on where they differ."""
        return hmac.compare_digest(self.to_bytes(), other.to_bytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self.matches(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "Secret([hidden])"

    def __reduce__(self) -> str:
        raise TypeError("a secret is not pickled")
