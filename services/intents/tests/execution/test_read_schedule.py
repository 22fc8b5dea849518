"""When accounts are read at their brokers: often or rarely, spread out, and never too fast for a broker."""

import heapq
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from intents.execution.model.read_schedule import BURST_SECONDS, JITTER, LONGEST_RETRY_SECONDS, Pace, ReadSchedule

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


@given(
    rate=st.floats(0.1, 500),
    polls=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 10_000)), min_size=1, max_size=60),
)
def test_whoever_claims_how_often_no_more_begins_than_the_pace_allows(rate, polls):
    """The polls are those of any number of reconcilers, which take turns at the pace's row."""
    now, pace, begun = START, Pace(START), []
    for seconds, waiting in polls:
        now += timedelta(seconds=seconds)
        granted, pace = pace.grant(now, rate, waiting)
        assert 0 <= granted <= waiting
        begun.append((now, granted))

    for place, (since, _) in enumerate(begun):
        total = 0
        for until, granted in begun[place:]:
            total += granted
            assert total <= ((until - since).total_seconds() + BURST_SECONDS) * rate + 1e-3 * rate + 1


@given(rate=st.floats(0.001, 500), waiting=st.integers(1, 10_000))
def test_a_slow_pace_grants_a_read_in_its_time(rate, waiting):
    first, pace = Pace(START).grant(START, rate, waiting)
    soon, _ = pace.grant(START + timedelta(seconds=0.5 * first / rate), rate, 1 if rate < 1 else 0)
    later, _ = pace.grant(START + timedelta(seconds=first / rate + 0.001), rate, waiting)

    assert first >= 1 and soon == 0 and later >= 1


def test_ten_thousand_accounts_are_read_within_the_rate_of_their_broker():
    """An hour of 10 000 accounts at one broker, a tenth of which holds something, claimed once a second."""
    schedule, dice, pace = ReadSchedule(), random.Random(15), Pace(START)
    due = [(0.0, number) for number in range(10_000)]  # a heap: all at once, as after an upgrade
    waiting: list[tuple[float, int]] = []
    reads: Counter[int] = Counter()
    for second in range(3_600):
        while due and due[0][0] <= second:
            heapq.heappush(waiting, heapq.heappop(due))
        granted, pace = pace.grant(START + timedelta(seconds=second), schedule.reads_per_second, len(waiting))
        reads[second] = granted
        for _, number in [heapq.heappop(waiting) for _ in range(granted)]:
            at = second + schedule.seconds_until_next(holding=number % 10 == 0, chance=dice.random())
            heapq.heappush(due, (at, number))

    assert max(reads.values()) <= schedule.reads_per_second
    assert max((second - at for at, _ in waiting), default=0) < 60, "and none is forgotten"
    assert sum(reads[second] for second in range(1_800, 2_400)) / 600 < 45, "room for what is requested"


@given(holding=st.booleans(), chance=st.floats(0, 1))
def test_an_account_that_holds_something_is_read_often_and_no_two_at_the_same_time(holding, chance):
    schedule = ReadSchedule(30.0, 3600.0, 50.0)
    wanted = 30.0 if holding else 3600.0

    assert wanted * (1 - JITTER) <= schedule.seconds_until_next(holding=holding, chance=chance) <= wanted * (1 + JITTER)


def test_a_read_that_failed_is_tried_again_soon_and_then_less_and_less_often():
    pauses = [ReadSchedule().seconds_until_retry(failures, 0.5) for failures in range(1, 2_000)]

    assert pauses[:3] == [2.0, 4.0, 8.0] and pauses == sorted(pauses) and pauses[-1] == LONGEST_RETRY_SECONDS
