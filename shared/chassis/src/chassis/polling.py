"""Waiting for what another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.1

T = TypeVar("T")


def poll(read: Callable[[], T], is_done: Callable[[T], bool], seconds: float) -> T:
    """What is read as soon as it is done, or as it stands when the time is over."""
    ends, pause = time.monotonic() + seconds, FIRST_PAUSE_S
    while not is_done(found := read()) and (left := ends - time.monotonic()) > 0:
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_S)
    return found
