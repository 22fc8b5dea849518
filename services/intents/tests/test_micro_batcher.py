"""Requests that wait at the same time form batches: one per key in flight, tenants in turn, no more than may wait."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from chassis.fair_queue import QueueFull
from intents.micro_batcher import MicroBatcher


def batching(run_batch: Callable[[Any], Any], **settings: Any) -> MicroBatcher[Any, Any]:
    return MicroBatcher(run_batch, linger_s=0.001, **settings)


def test_a_batch_that_is_stuck_stops_only_its_own_keys() -> None:
    stuck, seen = threading.Event(), []

    def run_batch(requests: list[str]) -> list[str]:
        seen.append(list(requests))
        if "slow" in requests:
            stuck.wait(60)
        return [request.upper() for request in requests]

    async def scene() -> list[str]:
        batcher = batching(run_batch, max_in_flight=2, max_batch=2, overtake_after_s=0.01)
        slow = asyncio.create_task(batcher.submit("one", "slow"))
        await asyncio.sleep(0.05)
        behind = asyncio.create_task(batcher.submit("one", "behind"))
        others = await asyncio.gather(*(batcher.submit(name, name) for name in "abc"))
        assert not slow.done() and not behind.done()
        stuck.set()
        return [*others, await slow, await behind]

    assert asyncio.run(scene()) == ["A", "B", "C", "SLOW", "BEHIND"]
    assert seen == [["slow"], ["a", "b"], ["c"], ["behind"]]


def test_tenants_take_turns_when_more_wait_than_a_batch_takes() -> None:
    seen: list[list[str]] = []
    may_begin = threading.Event()

    def run_batch(requests: list[str]) -> list[str]:
        may_begin.wait(60)
        seen.append(list(requests))
        return requests

    async def scene() -> None:
        batcher = batching(run_batch, max_in_flight=1, max_batch=4, overtake_after_s=10)
        first = asyncio.create_task(batcher.submit("first", "first"))
        await asyncio.sleep(0.05)
        loud = [asyncio.create_task(batcher.submit(number, f"loud {number}", "loud")) for number in range(20)]
        quiet = [asyncio.create_task(batcher.submit(f"q{number}", f"quiet {number}", "quiet")) for number in range(2)]
        await asyncio.sleep(0)
        may_begin.set()
        await asyncio.gather(first, *loud, *quiet)

    asyncio.run(scene())

    assert seen[1] == ["loud 0", "quiet 0", "loud 1", "quiet 1"]
    assert len(seen) == 1 + 6


def test_a_tenant_with_too_many_waiting_is_refused_at_once_and_no_other() -> None:
    may_begin = threading.Event()

    def run_batch(requests: list[str]) -> list[str]:
        may_begin.wait(60)
        return requests

    async def scene() -> list[Any]:
        batcher = batching(run_batch, max_in_flight=1, max_batch=4, overtake_after_s=10, max_waiting=3)
        loud = [asyncio.create_task(batcher.submit(number, f"loud {number}", "loud")) for number in range(5)]
        quiet = asyncio.create_task(batcher.submit("q", "quiet", "quiet"))
        done, _ = await asyncio.wait(loud, return_when=asyncio.FIRST_EXCEPTION)
        assert done == {loud[3], loud[4]}
        may_begin.set()
        return await asyncio.gather(*loud, quiet, batcher.submit("again", "loud again", "loud"), return_exceptions=True)

    *loud, quiet, again = asyncio.run(scene())

    assert loud[:3] == ["loud 0", "loud 1", "loud 2"]
    assert [type(answer) for answer in loud[3:]] == [QueueFull, QueueFull]
    assert (quiet, again) == ("quiet", "loud again")


def test_one_that_is_in_no_batch_in_time_is_refused_and_one_in_a_batch_is_answered() -> None:
    may_end, done = threading.Event(), list[str]()

    def run_batch(requests: list[str]) -> list[str]:
        done.extend(requests)
        may_end.wait(60)
        return requests

    async def scene() -> list[Any]:
        batcher = batching(run_batch, max_in_flight=1, max_batch=1, overtake_after_s=10, refuse_after_s=0.2)
        first, late = (asyncio.create_task(batcher.submit(name, name)) for name in ("first", "late"))
        await asyncio.wait([late])
        assert not first.done()
        may_end.set()
        return await asyncio.gather(first, late, return_exceptions=True)

    first, late = asyncio.run(scene())

    assert (first, type(late), done) == ("first", QueueFull, ["first"])


@pytest.mark.parametrize(
    ("keys", "batches"),
    [("aabcde", ["abcde", "a"]), ("aaabcd", ["aaabcd"]), ("aaaa", ["aaaa"])],
    ids=["one second", "too many", "nothing else"],
)
def test_the_second_of_a_key_waits_for_the_next_batch_unless_too_many_had_to(keys: str, batches: list[str]) -> None:
    seen: list[str] = []
    may_begin = threading.Event()

    def run_batch(requests: list[str]) -> list[str]:
        may_begin.wait(60)
        seen.append("".join(request[0] for request in requests))
        return requests

    async def scene() -> None:
        batcher = batching(run_batch, max_in_flight=1, max_batch=10, overtake_after_s=10)
        first = asyncio.create_task(batcher.submit("first", "first"))
        await asyncio.sleep(0.05)
        later = [asyncio.create_task(batcher.submit(key, f"{key}{place}")) for place, key in enumerate(keys)]
        await asyncio.sleep(0)
        may_begin.set()
        await asyncio.gather(first, *later)

    asyncio.run(scene())

    assert seen[1:] == batches


def test_each_that_waits_too_long_is_refused_at_its_own_time() -> None:
    may_end = threading.Event()

    def run_batch(requests: list[str]) -> list[str]:
        may_end.wait(60)
        return requests

    async def scene() -> list[bool]:
        batcher = batching(run_batch, max_in_flight=1, max_batch=1, overtake_after_s=10, refuse_after_s=0.3)
        first, second = (asyncio.create_task(batcher.submit(name, name)) for name in ("first", "second"))
        await asyncio.sleep(0.15)
        third = asyncio.create_task(batcher.submit("third", "third"))
        await asyncio.wait([second])
        waits = not third.done()
        await asyncio.wait([third])
        may_end.set()
        await first
        return [waits, isinstance(second.exception(), QueueFull), isinstance(third.exception(), QueueFull)]

    assert asyncio.run(scene()) == [True, True, True]


def test_an_error_of_a_batch_reaches_each_of_its_callers_and_the_next_batch_runs() -> None:
    def run_batch(requests: list[int]) -> list[int]:
        if 0 in requests:
            raise ZeroDivisionError
        return requests

    async def scene() -> tuple[list[Any], int]:
        batcher = batching(run_batch, max_in_flight=1, max_batch=10, overtake_after_s=0.01)
        spoilt = await asyncio.gather(batcher.submit("a", 0), batcher.submit("b", 1), return_exceptions=True)
        return spoilt, await batcher.submit("a", 2)

    spoilt, after = asyncio.run(scene())

    assert [type(answer) for answer in spoilt] == [ZeroDivisionError, ZeroDivisionError]
    assert after == 2


def test_a_request_whose_caller_has_gone_before_its_turn_is_not_run() -> None:
    done: list[int] = []
    first_may_end = threading.Event()

    def run_batch(requests: list[int]) -> list[int]:
        done.extend(requests)
        first_may_end.wait(60)
        return requests

    async def scene() -> None:
        batcher = batching(run_batch, max_in_flight=1, max_batch=10, overtake_after_s=0.01)
        first = asyncio.create_task(batcher.submit("a", 1))
        await asyncio.sleep(0.05)
        gone, stays = asyncio.create_task(batcher.submit("b", 2)), asyncio.create_task(batcher.submit("c", 3))
        await asyncio.sleep(0.05)
        gone.cancel()
        first_may_end.set()
        assert (await first, await stays) == (1, 3)

    asyncio.run(scene())

    assert done == [1, 3]


def test_a_caller_that_has_gone_leaves_the_answers_of_the_others() -> None:
    async def scene() -> int:
        batcher = batching(lambda requests: requests, max_in_flight=1, max_batch=10, overtake_after_s=0.01)
        gone = asyncio.create_task(batcher.submit("a", 1))
        stays = asyncio.create_task(batcher.submit("b", 2))
        await asyncio.sleep(0)
        gone.cancel()
        return await stays

    assert asyncio.run(scene()) == 2
