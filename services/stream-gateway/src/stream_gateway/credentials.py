"""The credentials of open streams, each verified again as one, however many streams it has."""

from collections.abc import Hashable
from typing import Protocol
from uuid import UUID

from stream_gateway.callers import Caller
from stream_gateway.model import Ending


class Stream(Protocol):
    """What a credential needs of the streams that it opened: they end with it."""

    def end(self, ending: Ending) -> None: ...


class Credential:
    """`verified_at` is when it was last found valid in the database, by the loop's clock."""

    __slots__ = ("caller", "expires_at", "organization_id", "streams", "verified_at")

    def __init__(self, caller: Caller, organization_id: UUID, verified_at: float) -> None:
        self.caller, self.organization_id, self.verified_at = caller, organization_id, verified_at
        self.expires_at = caller.expires_at
        self.streams: set[Stream] = set()

    @property
    def check(self) -> Hashable:
        """Which of the CHECKS verifies it again."""
        return self.caller.principal.kind

    def end(self, ending: Ending) -> None:
        for stream in list(self.streams):
            stream.end(ending)
