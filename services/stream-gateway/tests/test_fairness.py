"""Organizations take turns: with threads, with writes, with reads of the log and with being verified again."""

import asyncio
import selectors
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.presence import OwnPresence
from stream_gateway.delivery import deliver
from stream_gateway.fairness import WRITES_PER_PASS, FairThreads, QueueFull, RoundRobin, WriteScheduler
from stream_gateway.hub import Hub, Stream
from stream_gateway.model import CredentialEnded
from stream_gateway.recheck import MOST, RecheckQueue
from stream_gateway.schemas import Entry
from tip_testing.waiting import eventually_async

A, B = uuid4(), uuid4()
EVENT = b"event"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers()), max_size=60))
def test_nobody_is_served_twice_while_another_waits(items: list[tuple[str, int]]) -> None:
    queue: RoundRobin[tuple[str, int]] = RoundRobin()
    for item in items:
        queue.add(item[0], item)
    taken = []
    while item := queue.take():
        taken.append(item)

    left = Counter(key for key, _ in items)
    for before, after in pairwise(taken):
        left[before[0]] -= 1
        assert before[0] != after[0] or sum(left.values()) == left[before[0]]
    for name in "abc":
        assert [item for item in taken if item[0] == name] == [item for item in items if item[0] == name]


def test_a_thread_goes_to_whoever_has_waited_least_lately() -> None:
    begun: list[str] = []
    release = threading.Event()

    async def scenario() -> None:
        threads = FairThreads(1, "test")
        crowd = [asyncio.create_task(threads.run("a", lambda: begun.append("a") or release.wait())) for _ in range(50)]
        await asyncio.sleep(0)
        single = asyncio.create_task(threads.run("b", lambda: begun.append("b")))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*crowd, single)
        threads.close()

    asyncio.run(scenario())

    assert begun.index("b") <= 2 and begun.count("a") == 50


class AtOnce(ThreadPoolExecutor):
    """Runs what is submitted in the caller's thread, and so at the loop's time."""

    def submit(self, function: Any, /, *args: Any, **more: Any) -> "Future[Any]":
        done: Future[Any] = Future()
        done.set_result(function(*args, **more))
        return done


class Skipping(selectors.DefaultSelector):
    """Where nothing is ready, time passes at once instead of being waited for: no busy machine changes it."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            self.now += timeout or 0.0
        return ready


def test_while_others_are_there_the_functions_of_one_key_begin_apart() -> None:
    def begun(*others: str) -> dict[str, list[float]]:
        clock, times = Skipping(), dict[str, list[float]]()
        loop = asyncio.SelectorEventLoop(clock)
        loop.time = lambda: clock.now  # type: ignore[method-assign]
        threads = FairThreads(2, "test", apart_s=0.05)
        threads._threads, threads._presence = AtOnce(), OwnPresence(loop.time)

        async def run(key: str) -> None:
            await threads.run(key, lambda: times.setdefault(key, []).append(clock.now))

        async def run_all() -> None:
            await asyncio.gather(*map(run, (*others, "a", "a", "a", *others)))

        loop.run_until_complete(run_all())
        threads.close()
        loop.close()
        return times

    alone, crowded = begun(), begun("b")

    assert alone["a"] == [0.0, 0.0, 0.0]
    assert len(crowded["a"]) == 3
    assert all(later - earlier >= 0.0499 for earlier, later in pairwise(crowded["a"]))


def test_what_is_given_up_before_its_turn_is_never_begun() -> None:
    begun: list[int] = []
    release = threading.Event()

    async def scenario() -> None:
        threads = FairThreads(1, "test", most_waiting=2)
        tasks = [
            asyncio.create_task(threads.run("a", lambda number=number: begun.append(number) or release.wait()))
            for number in range(3)
        ]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            await threads.run("a", release.wait)
        tasks[1].cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        threads.close()

    asyncio.run(scenario())

    assert begun == [0, 2]


def test_a_failure_in_a_thread_is_the_callers_and_frees_the_thread() -> None:
    async def scenario() -> str:
        threads = FairThreads(1, "test")
        with pytest.raises(ZeroDivisionError):
            await threads.run("a", lambda: 1 // 0)
        answer = await threads.run("a", lambda: "answer")
        threads.close()
        return answer

    assert asyncio.run(scenario()) == "answer"


class Subscriber:
    """A stream that is delivered to; what is written goes into a list shared by all of them."""

    def __init__(self, hub: Hub, written: list[UUID]) -> None:
        nobody: Any = None
        self.stream = Stream(hub, nobody, frozenset({1}), hub.last, 0, "grpc")
        self._written, self._organization_id = written, hub.organization_id
        hub.streams.add(self.stream)
        nothing: Any = None
        self.task = asyncio.create_task(deliver(self.stream, nothing, self._write, lambda entry: entry, 600))

    async def _write(self, entry: Any) -> None:
        if entry.message == EVENT:
            self._written.append(self._organization_id)
        await asyncio.sleep(0)


def hub_of(organization_id: UUID, scheduler: WriteScheduler) -> Hub:
    return Hub(uuid4(), organization_id, "epoch", 0, 512, scheduler)


@pytest.mark.parametrize("events", [1, 20])
def test_an_event_for_one_is_not_written_after_the_events_for_a_thousand_of_another(events: int) -> None:
    written: list[UUID] = []

    async def scenario() -> None:
        scheduler = WriteScheduler()
        crowded, quiet = hub_of(A, scheduler), hub_of(B, scheduler)
        crowd = [Subscriber(crowded, written) for _ in range(1000)]
        single = Subscriber(quiet, written)
        for subscriber in (*crowd, single):
            await eventually_async(lambda subscriber=subscriber: subscriber.stream.waiting)
        crowded.append([Entry(number, 1, EVENT) for number in range(1, events + 1)])
        quiet.append([Entry(1, 1, EVENT)])
        await eventually_async(lambda: len(written) == 1000 * events + 1)
        for subscriber in (*crowd, single):
            subscriber.stream.end(CredentialEnded())
        await asyncio.gather(*(subscriber.task for subscriber in (*crowd, single)), return_exceptions=True)

    asyncio.run(scenario())

    assert written.index(B) <= 3 * WRITES_PER_PASS
    assert written.count(A) == 1000 * events


def test_a_stream_that_waits_for_its_turn_is_not_stuck() -> None:
    async def scenario() -> bool:
        scheduler = WriteScheduler(per_pass=1)
        stream = Subscriber(hub_of(A, scheduler), []).stream
        await scheduler.acquire(B)  # the only one of this pass
        task = asyncio.create_task(stream.acquire_write())
        await asyncio.sleep(0)
        assert stream.queued
        stream.is_stuck(0.0, 10)
        stuck = stream.is_stuck(100.0, 10)
        await task
        return stuck

    assert asyncio.run(scenario()) is False


class Item:
    """Something to be verified again."""

    check = "item"
    verified_at = 0.0

    def __init__(self, organization_id: UUID) -> None:
        self.organization_id, self.streams = organization_id, {"a stream"}

    def end(self, _ending: object) -> None:
        self.streams.clear()


@pytest.mark.parametrize("crowd", [1_000, 7_500])
def test_whatever_one_organization_has_open_anothers_credential_is_in_the_first_batch(crowd: int) -> None:
    queue = RecheckQueue(interval_s=2.0)
    of_a, of_b = [Item(A) for _ in range(crowd)], Item(B)
    for item in (*of_a, of_b):
        queue.add(item, attempted_at=0.0)

    first = queue.take(now=2.0, limit=MOST)

    assert of_b in first and len(first) == MOST


def test_while_one_organization_cannot_be_verified_in_time_another_is_verified_every_time() -> None:
    """The database is so slow that a batch takes half a second, and a round of everything would take eight."""
    queue = RecheckQueue(interval_s=2.0)
    of_a, of_b = [Item(A) for _ in range(7_500)], Item(B)
    for item in (*of_a, of_b):
        queue.add(item, attempted_at=0.0)
    verified: dict[Item, list[float]] = {item: [] for item in (*of_a, of_b)}
    for half_seconds in range(4, 60):
        now = half_seconds / 2
        for item in queue.take(now, MOST):
            verified[item].append(now)
            queue.add(item, now)

    assert verified[of_b] == [float(second) for second in range(2, 30, 2)]
    assert {len(verified[item]) for item in of_a} == {3, 4}


def test_more_organizations_than_a_batch_are_all_served_before_one_is_again() -> None:
    queue = RecheckQueue(interval_s=2.0)
    for _ in range(2):
        for item in [Item(uuid4()) for _ in range(7)]:
            queue.add(item, 0.0)
            queue.add(Item(item.organization_id), 0.0)

    taken = [item.organization_id for _ in range(7) for item in queue.take(2.0, 2)]

    assert len(set(taken)) == 14


def test_what_has_no_stream_any_more_is_forgotten() -> None:
    queue = RecheckQueue(interval_s=2.0)
    gone, open_one = Item(A), Item(A)
    for item in (gone, open_one):
        queue.add(item, 0.0)
    gone.streams.clear()

    assert queue.take(2.0, MOST) == [open_one]
    assert queue.take(2.0, MOST) == []


@pytest.mark.parametrize(("waiting", "turn_s", "share"), [(3, 0.05, 20), (5_000, 0.05, 250), (5_000, 0.5, 500)])
def test_a_turn_verifies_no_more_than_its_share_of_half_an_interval(waiting: int, turn_s: float, share: int) -> None:
    queue = RecheckQueue(interval_s=2.0)
    for _ in range(waiting):
        queue.add(Item(A), 0.0)

    assert len(queue) == waiting
    assert queue.share(turn_s) == share
    assert len(queue.take(2.0, share)) == min(share, waiting)
    assert len(queue) == max(waiting - share, 0)
