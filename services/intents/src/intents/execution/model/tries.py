"""How much of what waits for an open circuit may be claimed."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

NO_LIMIT = 1_000_000


class Tries(NamedTuple):
    """Of one lane; without an open circuit there is no limit."""

    in_all: int = NO_LIMIT
    of_each: int = NO_LIMIT
    """Of each organization,"""
    of: Mapping[UUID, int] = {}
    """but of these so much."""

    def limit(self, organization_id: UUID) -> bool:
        """Whether the organization has a limit."""
        return min(self.in_all, self.of.get(organization_id, self.of_each)) < NO_LIMIT


ALL = Tries()
