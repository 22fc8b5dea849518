"""The executor's alarm: it rings at the earliest moment that was set, and is off afterwards."""

import threading
import time

import pytest

from intents.execution.alarm import Alarm


@pytest.fixture
def alarm() -> Alarm:
    return Alarm()


def seconds_of_waiting(alarm: Alarm, at_most: float) -> float:
    began = time.monotonic()
    alarm.wait(at_most)
    return time.monotonic() - began


def test_what_was_set_before_the_wait_is_not_missed(alarm: Alarm) -> None:
    alarm.set()

    assert seconds_of_waiting(alarm, 30.0) < 10.0


def test_the_earliest_moment_counts(alarm: Alarm) -> None:
    alarm.set(30.0)
    alarm.set(60.0)
    assert 20.0 < alarm.seconds <= 30.0

    alarm.set(10.0)

    assert alarm.seconds <= 10.0


def test_an_earlier_moment_ends_a_wait(alarm: Alarm) -> None:
    threading.Timer(0.1, alarm.set).start()

    assert seconds_of_waiting(alarm, 30.0) < 5.0


def test_a_later_moment_prolongs_no_wait(alarm: Alarm) -> None:
    threading.Timer(0.05, alarm.set, (60.0,)).start()

    assert 0.2 <= seconds_of_waiting(alarm, 0.2) < 5.0


def test_it_rings_until_it_is_cleared(alarm: Alarm) -> None:
    alarm.set()
    assert alarm.wait(1.0)
    assert alarm.wait(1.0)

    alarm.clear()

    assert not alarm.wait(0.01)


def test_a_wait_that_ends_before_it_rings_leaves_it_set(alarm: Alarm) -> None:
    alarm.set(2.0)

    assert not alarm.wait(0.01)
    assert alarm.wait(10.0)
