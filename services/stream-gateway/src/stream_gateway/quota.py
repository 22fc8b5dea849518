"""How many streams a caller, an organization and this process may have; those being admitted count as open ones do."""

from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stream_gateway.model import TooManyStreams

Owners = tuple[Hashable, ...]
"""Whose a stream is: the caller's, and its organization's where that is known."""


@dataclass(frozen=True)
class Limits:
    """How many streams may be open here."""

    per_principal: int
    per_organization: int
    per_process: int


class StreamQuota:
    """Used by the event loop alone, so nothing is locked."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._of: Counter[Hashable] = Counter()
        self._open = 0

    @contextmanager
    def pending(self, owners: Owners) -> Iterator[None]:
        """Count a stream that is being admitted.

        Not in the count of the process: whoever waits must not keep out an organization that does not.
        """
        self.check(owners)
        self._add(owners, 1)
        try:
            yield
        finally:
            self._add(owners, -1)

    def check_process(self) -> None:
        if self._open >= self.limits.per_process:
            raise TooManyStreams

    def check(self, owners: Owners) -> None:
        limits = (self.limits.per_principal, self.limits.per_organization)
        if any(self._of[owner] >= limit for owner, limit in zip(owners, limits, strict=False)):
            raise TooManyStreams

    def take(self, owners: Owners) -> None:
        self._open += 1
        self._add(owners, 1)

    def give_back(self, owners: Owners) -> None:
        self._open -= 1
        self._add(owners, -1)

    def _add(self, owners: Owners, number: int) -> None:
        for owner in owners:
            self._of[owner] += number
            if not self._of[owner]:
                del self._of[owner]

    def __len__(self) -> int:
        return self._open
