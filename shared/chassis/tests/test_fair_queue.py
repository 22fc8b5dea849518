"""The fair queue: whatever one tenant sends, the others keep their part of the threads, and nobody waits for ever."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chassis.callers import Caller, Trust
from chassis.fair_queue import FairQueue, QueueFull, Shares, Slot

from .fair_queue_office import THREADS, Office, caller, in_a_loop, settled


@in_a_loop
async def test_a_tenant_holds_half_of_the_threads_and_one_key_of_it_a_quarter() -> None:
    office = Office()
    await office.send(*[caller("loud", "one")] * 20)
    assert len(office.running) == THREADS // 4

    await office.send(*[caller("loud", f"key-{number}") for number in range(20)])
    assert len(office.running) == THREADS // 2


@in_a_loop
async def test_another_tenant_runs_at_once_beside_one_that_sends_too_much() -> None:
    office = Office()
    await office.send(*[caller("loud", f"key-{number}") for number in range(50)])

    await office.send(caller("quiet"))

    assert office.tenants["quiet"] == 1


@in_a_loop
async def test_tenants_take_turns_when_all_threads_are_taken() -> None:
    office = Office()
    for tenant in ("a", "b"):
        await office.send(*[caller(tenant, f"key-{number}") for number in range(30)])
    await office.send(caller("late"))
    assert office.tenants == {"a": 4, "b": 4}

    await office.end(office.running[0])
    await office.end(office.running[0])
    assert office.tenants["late"] == 1


@in_a_loop
async def test_heavy_requests_of_a_tenant_run_one_at_a_time_and_light_ones_beside_them() -> None:
    office = Office()
    await office.send(*[caller("loud", f"key-{number}") for number in range(10)], heavy=True)
    assert len(office.running) == 1

    await office.send(caller("loud", "reader"))
    assert [slot.heavy for slot in office.running] == [True, False]

    await office.end(office.running[0])
    assert sorted(slot.heavy for slot in office.running) == [False, True]


@in_a_loop
async def test_after_a_heavy_request_its_tenant_pauses_with_the_next_and_its_thread_is_free_at_once() -> None:
    office = Office()
    await office.send(caller("loud", "a"), caller("loud", "b"), heavy=True)
    [first] = office.running
    office.running.remove(first)
    office.queue.release(first, pause_s=0.05)
    await settled()
    assert not office.running

    await office.send(caller("loud", "reader"))
    await office.send(caller("quiet"), heavy=True)
    assert office.tenants == {"loud": 1, "quiet": 1}

    await asyncio.sleep(0.1)
    assert office.tenants == {"loud": 2, "quiet": 1}


@in_a_loop
async def test_strangers_share_one_thread_however_many_addresses_they_have() -> None:
    office = Office()
    await office.send(*[caller(f"10.0.0.{number}", trust=Trust.UNVERIFIED) for number in range(50)])
    assert len(office.running) == 1

    await office.send(caller("quiet"))
    assert office.tenants["quiet"] == 1


@in_a_loop
async def test_batches_of_many_tenants_keep_nobodys_heavy_reads_waiting() -> None:
    office = Office()
    await office.send(*(caller(f"loud-{number}", "a") for number in range(8)), heavy=True, writes=True)
    await office.send(caller("quiet", "a"), heavy=True)

    assert office.running[-1].caller.tenant == "quiet" and not office.running[-1].writes
    assert sum(slot.writes for slot in office.running) < 8


@in_a_loop
async def test_while_its_batches_pause_a_tenant_has_one_heavy_read_at_a_time() -> None:
    office = Office()
    await office.send(caller("loud", "a"), heavy=True, writes=True)
    await office.send(caller("loud", "b"), caller("loud", "c"), heavy=True)
    [batch] = office.running
    office.running.remove(batch)
    office.queue.release(batch, pause_s=60.0)
    await office.send(caller("loud", "d"), heavy=True, writes=True)

    assert [(slot.writes, slot.caller.principal) for slot in office.running] == [(False, "loud/b")]


@in_a_loop
async def test_after_a_pause_of_strangers_the_next_one_runs() -> None:
    office = Office()
    await office.send(*[caller(f"10.0.0.{number}", trust=Trust.UNVERIFIED) for number in range(2)])
    [first] = office.running
    office.running.remove(first)
    office.queue.release(first, pause_s=0.05)
    await settled()
    assert not office.running

    await asyncio.sleep(0.1)
    assert len(office.running) == 1


@in_a_loop
async def test_strangers_hold_up_no_heavy_request_whatever_they_send() -> None:
    office = Office()
    kinds = (Trust.UNVERIFIED, Trust.ANONYMOUS)
    await office.send(*[caller(f"10.0.0.{number}", trust=trust) for number in range(9) for trust in kinds], heavy=True)

    await office.send(caller("quiet"), heavy=True)

    assert office.tenants["quiet"] == 1


@in_a_loop
async def test_who_waits_too_long_is_refused_with_retry_after() -> None:
    office = Office(wait_s=0.01)
    tasks = await office.send(*[caller("loud")] * 3)
    await asyncio.wait(tasks)

    assert (len(office.running), office.refused) == (2, [caller("loud")])
    assert (QueueFull().status, QueueFull().code, QueueFull().headers["Retry-After"]) == (429, "too_many_requests", "1")


@in_a_loop
async def test_time_that_a_request_waited_before_the_queue_counts() -> None:
    queue, now = FairQueue(THREADS, wait_s=10.0), asyncio.get_running_loop().time()
    await queue.acquire(caller("late"), arrived=now - 9.0)

    with pytest.raises(QueueFull):
        await queue.acquire(caller("late"), arrived=now - 10.0)
    await asyncio.gather(*(queue.acquire(caller("loud")) for _ in range(2)))
    with pytest.raises(QueueFull):
        await asyncio.wait_for(queue.acquire(caller("loud"), arrived=now - 9.99), 5.0)


@in_a_loop
async def test_a_tenant_with_too_many_waiting_is_refused_at_once() -> None:
    office = Office(most_waiting=5)
    await office.send(*[caller("loud")] * 10)

    assert (len(office.running), len(office.refused)) == (2, 3)


@in_a_loop
async def test_one_who_has_gone_takes_no_turn() -> None:
    office = Office()
    tasks = await office.send(*[caller("loud")] * 4)
    tasks[2].cancel()
    await settled()

    await office.end(office.running[0])
    await office.end(office.running[0])

    assert len(office.running) == 1 and tasks[3].done()


class CountedLookups(Counter[object]):
    """Counts how often somebody's running requests are read."""

    count = 0

    def __getitem__(self, key: object) -> int:
        self.count += 1
        return super().__getitem__(key)


async def cost_of_a_request(*crowd: Caller, heavy: bool = False) -> int:
    """How often the queue reads what is running to serve one request of another while such a crowd waits."""
    office = Office()
    await office.send(*crowd, heavy=heavy)
    lookups = office.queue._running = CountedLookups(office.queue._running)
    await office.send(caller("quiet"))
    await office.end(office.running[-1])
    return lookups.count


ANONYMOUS = [caller(f"10.0.0.{number % 10}", trust=Trust.ANONYMOUS) for number in range(2_560)]
CROWDS = {
    "strangers": (ANONYMOUS, False),
    "one key": ([caller("loud")] * 250, False),
    "many keys": ([caller("loud", f"key-{number}") for number in range(250)], False),
    "heavy requests of many keys": ([caller("loud", f"key-{number}") for number in range(250)], True),
}


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_request_costs_the_queue_the_same_however_many_of_others_wait(crowd: str) -> None:
    callers, heavy = CROWDS[crowd]

    few, many = (asyncio.run(cost_of_a_request(*callers[:count], heavy=heavy)) for count in (20, len(callers)))

    assert 0 < many <= few + 10


@in_a_loop
async def test_the_keys_of_a_tenant_take_turns() -> None:
    office = Office()
    await office.send(*[caller("loud", "one")] * 20, *[caller("loud", "other")] * 20, caller("loud", "third"))
    for _ in range(2):
        await office.end(office.running[0])

    assert caller("loud", "third") in [slot.caller for slot in office.running]


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
def test_whatever_the_number_of_threads_each_kind_of_caller_gets_one(threads: int) -> None:
    assert min(Shares.of(threads)) >= 1


REQUESTS = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.sampled_from(list(Trust)), st.booleans())


@given(st.lists(REQUESTS | st.integers(min_value=0, max_value=30), max_size=60))
def test_no_share_is_ever_exceeded_and_no_thread_idles_while_someone_may_run(steps: list[Any]) -> None:
    async def play() -> None:
        office = Office()
        for step in steps:
            if isinstance(step, int):
                if office.running:
                    await office.end(office.running[step % len(office.running)])
            else:
                tenant, key, trust, heavy = step
                await office.send(caller(tenant, key, trust), heavy=heavy)
            check(office)
        while office.running:
            await office.end(office.running[0])
        assert not office.queue._waiting and not office.queue._waiting_of and not +office.queue._running

    asyncio.run(play())


def check(office: Office) -> None:
    shares, running = Shares.of(THREADS), office.running
    verified = [slot for slot in running if slot.caller.trust is Trust.VERIFIED]
    assert len(running) <= shares.all
    assert max(Counter((slot.caller.trust, slot.caller.tenant) for slot in running).values(), default=0) <= 4
    assert max(Counter(slot.caller for slot in verified).values(), default=0) <= shares.principal
    assert sum(slot.caller.trust is Trust.UNVERIFIED for slot in running) <= shares.unverified
    assert sum(slot.heavy for slot in running) <= shares.heavy
    assert not any(slot.heavy for slot in running if slot not in verified)
    assert not any(office.queue._may_run(slot) for slot in waiting(office.queue._waiting))


def waiting(group: Any) -> list[Slot]:
    return [slot for inner in group.values() for slot in waiting(inner)] if isinstance(group, dict) else list(group)
