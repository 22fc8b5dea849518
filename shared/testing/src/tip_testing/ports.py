"""Ports for the servers that tests start."""

import os
from collections.abc import Iterator

from tip_local.processes import port_is_free

LOWEST, PER_WORKER, WORKERS = 16_384, 1_600, 10
"""Below the ports that Linux and macOS hand out themselves: a connection of somebody else never takes one of them."""


def _candidates() -> Iterator[int]:
    """The ports of this pytest worker, again and again; two runs on one machine begin at different ones."""
    worker = int("0" + os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")) % WORKERS
    place = os.getpid()
    while True:
        yield LOWEST + worker * PER_WORKER + place % PER_WORKER
        place += 1


_CANDIDATES = _candidates()


def reserved_port() -> int:
    """A free port that no other worker of this run is given, and this one not again soon."""
    return next(port for port in _CANDIDATES if port_is_free(port))
