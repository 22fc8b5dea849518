"""Fairness between organizations: how much of what all share one of them may hold, be it threads or claimed commands.

An organization may take another place while it holds less than `WEIGHT` times the places that are free, the last one
not counted: that is for whoever has none. Alone it comes to three quarters of the places, and n that take by turns come
to about 3 / (3n + 1) each. Who comes later finds less, and when every place is taken the next one that is given back
goes to one who has none.

Places that are held for long, as streams are, are not waited for: whoever has fewer takes over from whoever has most,
until they have as many as each other.
"""

from collections.abc import Mapping
from uuid import UUID

WEIGHT = 3


def may_take_another(held: int, free: int) -> bool:
    return free > 0 and (held == 0 or held < WEIGHT * (free - 1))


def allowance(held: int, free: int) -> int:
    """How many more an organization may take one after the other, if nobody else takes or gives back any."""
    last = 1 if held == 0 and free > 0 else 0
    return max(last, -(-(WEIGHT * (free - 1) - held) // (WEIGHT + 1)))


def who_gives_way(organization_id: UUID, held: Mapping[UUID, int]) -> UUID | None:
    """The organization with most places, if one of them given to this one leaves it no fewer than this one has then."""
    most = max(held, key=held.__getitem__, default=organization_id)
    return most if held.get(most, 0) >= held.get(organization_id, 0) + 2 else None
