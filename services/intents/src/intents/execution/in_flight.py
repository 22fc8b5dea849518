"""How many commands of a lane an executor has in flight, by organization, and how many more it may claim of each."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from intents.execution.fair_share import allowance
from intents.execution.model.commands import LeasedCommand

CLAIM = 200
GUARANTEED = 4
"""However much the others have, an organization may have this much: their calls may have been quick and turned slow."""


class ClaimBudget(NamedTuple):
    """For one claim: in all, of each organization that has something in flight, and of each other one."""

    total: int
    allowances: Mapping[UUID, int]
    of_others: int
    is_ample: bool
    """Whether a claim is worth it for those who have something in flight, and not only for whoever has just come."""
    left_out: tuple[UUID, ...] = ()
    """Accounts of which nothing may be claimed: they have as many calls as they may."""

    def cuts_short(self, taken: Mapping[UUID, int]) -> bool:
        """Whether an organization may have more than it was allowed, if so much was claimed of each."""
        at_its_allowance = (
            count >= self.allowances.get(organization_id, self.of_others) for organization_id, count in taken.items()
        )
        return any(at_its_allowance) or not all(self.allowances.values())


class InFlight:
    """Commands that were claimed and of which nothing is recorded yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: Counter[UUID] = Counter()

    def add(self, commands: Iterable[LeasedCommand]) -> None:
        with self._lock:
            self._held.update(command.organization_id for command in commands)

    def remove(self, commands: Iterable[LeasedCommand]) -> None:
        with self._lock:
            self._held.subtract(command.organization_id for command in commands)
            self._held = +self._held

    def budget(self, most: int, blocked: Mapping[UUID, tuple[UUID, int]]) -> ClaimBudget:
        """`blocked`: what waits for its own account only, by account; it takes nobody's place."""
        with self._lock:
            held = Counter(self._held)
        for organization_id, count in blocked.values():
            held[organization_id] -= count
        free = max(0, most - held.total())
        allowances = {
            organization_id: max(allowance(count, free), GUARANTEED - count) for organization_id, count in held.items()
        }
        enough = min(CLAIM, max(1, most // 8))
        return ClaimBudget(
            min(CLAIM, max(free, GUARANTEED)),
            {organization_id: max(0, count) for organization_id, count in allowances.items()},
            max(allowance(0, free), GUARANTEED),
            not held or max(allowances.values()) >= enough,
            tuple(blocked),
        )
