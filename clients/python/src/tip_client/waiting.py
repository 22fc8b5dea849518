"""How often something is read again while its caller waits for it."""

from collections.abc import Sequence

from tip_client.errors import ConfigurationError
from tip_client.words import Status

FIRST_POLL_S = 0.02
SLOWEST_POLL_S = 1.0


def next_delay(elapsed: float, timeout: float | None) -> float | None:
    """Seconds until the next read, ever more of them; None when the time is over."""
    delay = min(SLOWEST_POLL_S, max(FIRST_POLL_S, elapsed / 3))
    if timeout is None:
        return delay
    return min(delay, timeout - elapsed) if elapsed < timeout else None


def wanted_statuses(statuses: Sequence[Status | str]) -> frozenset[Status]:
    """Those that are named, which must be known; all that end an order without any."""
    if not statuses:
        return frozenset(status for status in Status if status.is_terminal)
    wanted = frozenset(map(Status, statuses))
    if not all(status.is_known for status in wanted):
        raise ConfigurationError(f"There is no such status; there are {', '.join(Status)}.")
    return wanted
