"""The clock by which facts grow old and leases run out in a process."""

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed() -> float:
    """Seconds since some moment. They pass also while the process is stopped or the machine is suspended."""
    return time.clock_gettime(_CLOCK)
