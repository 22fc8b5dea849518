"""A worker that finds nothing polls more and more rarely, and at once when it is woken."""

import math
import threading
import time

import pytest

from chassis import rest
from chassis.rest import Rest


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """It goes on by what is waited for."""
    seconds = [0.0]
    monkeypatch.setattr(rest.time, "monotonic", lambda: seconds[0])
    return seconds


def length(resting: Rest, clock: list[float]) -> float:
    """Of a rest that nothing ends."""

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    began = clock[0]
    resting.wait(sleep, threading.Event())
    return clock[0] - began


def test_who_finds_nothing_rests_longer_each_time_up_to_five_seconds(clock: list[float]) -> None:
    resting = Rest()

    assert [length(resting, clock) for _ in range(5)] == [1, 2, 4, 5, 5]


def test_a_wake_up_ends_the_rest_and_the_next_one_is_short(clock: list[float]) -> None:
    resting = Rest()
    for _ in range(5):
        length(resting, clock)

    began = clock[0]
    resting.wait(lambda _seconds: True, threading.Event())

    assert (clock[0], length(resting, clock)) == (began, 1)


@pytest.mark.parametrize("seconds", [rest.LONGEST_S, math.inf], ids=["longest", "until woken"])
def test_who_rests_notices_within_a_second_that_it_is_to_stop(seconds: float) -> None:
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()

    began = time.monotonic()
    Rest(seconds).wait(time.sleep, stop)

    assert time.monotonic() - began < 2 * rest.TURN_S
