"""Fairness between organizations: how much of what all share one of them may hold, be it threads or claimed commands.

An organization may take another place while it holds less than `WEIGHT` times the places that are free. Alone it comes
to three quarters of them. The rest stays free, so that whoever comes next need not wait for a slow call to end. Of n
that want all they can get each comes to 3 / (3n + 1) of the places, and a third of that stays free.
"""

WEIGHT = 3


def may_take_another(held: int, free: int) -> bool:
    return held < WEIGHT * free


def allowance(held: int, free: int) -> int:
    """How many more an organization may take one after the other, if nobody else takes or gives back any."""
    return max(0, -(-(WEIGHT * free - held) // (WEIGHT + 1)))
