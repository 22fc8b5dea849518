"""The feed has the rows of one ordering key in the order of their ids, whoever dies, freezes or comes back late."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import text

from chassis.outbox import Claim, Event, Outbox
from tip_testing.outbox import (
    age_claims,
    append,
    claim,
    complete,
    inversions,
    make_due,
    rows,
    statuses,
    wait_for_a_lock_waiter,
)


def freeze(outbox: Outbox) -> None:
    """As if every worker had stood still for longer than a claim lasts."""
    age_claims(outbox, 6)


def drain(outbox: Outbox) -> None:
    """Settle everything that is open, as a new worker would once all others are gone."""
    while {"pending", "processing"} & set(statuses(outbox)):
        make_due(outbox), freeze(outbox)
        with outbox.engine.begin() as tx:
            failed = outbox.fail_abandoned(tx)
        assert complete(outbox, claim(outbox)) or failed, "an open row is claimed by nobody"


def test_a_relay_that_wakes_up_cannot_complete_a_row_whose_predecessor_was_taken_from_it(outbox: Outbox) -> None:
    first, second = append(outbox, "a.created", "a.updated", key="account-1")
    claim(outbox)  # and relay A dies
    freeze(outbox)
    relay_b = claim(outbox)
    freeze(outbox)
    relay_c = claim(outbox)
    assert [[row.id for row in held.rows] for held in (relay_b, relay_c)] == [[first, second], [first]]

    assert complete(outbox, relay_b) == []
    assert complete(outbox, relay_c) == [first]
    assert complete(outbox, claim(outbox)) == [second]

    assert inversions(outbox) == []


def test_what_could_not_be_completed_stays_with_its_claim_and_may_be_completed_later(outbox: Outbox) -> None:
    first, second = append(outbox, "a.created", "a.updated", key="account-1")
    claim(outbox), freeze(outbox)
    relay_b = claim(outbox)
    freeze(outbox)
    relay_c = claim(outbox)
    complete(outbox, relay_b)
    assert [(row.status, row.attempts, row.claim_token) for row in rows(outbox)] == [
        ("processing", 3, relay_c.token),
        ("processing", 2, relay_b.token),
    ]

    assert complete(outbox, relay_c) == [first]
    assert complete(outbox, relay_b) == [second]


def test_a_relay_that_wakes_up_completes_what_has_no_predecessor_and_leaves_the_rest(outbox: Outbox) -> None:
    *taken, left = append(outbox, *["a.updated"] * 4, key="account-1")
    [other] = append(outbox, "a.created", key="account-2")
    [unordered] = append(outbox, "a.created")
    late = claim(outbox)
    freeze(outbox)
    current = claim(outbox, 3)
    assert [row.id for row in current.rows] == taken

    assert complete(outbox, late) == [other, unordered]
    assert complete(outbox, current) == taken
    assert complete(outbox, claim(outbox)) == [left]


def test_a_claim_that_is_completed_in_parts_is_completed_in_order(outbox: Outbox) -> None:
    ids = append(outbox, *["a.updated"] * 4, key="account-1")
    held = claim(outbox)

    assert complete(outbox, held, [ids[1], ids[3]]) == []
    assert complete(outbox, held, [ids[0], ids[1], ids[3]]) == ids[:2]
    assert complete(outbox, held, ids) == ids[2:]


@pytest.mark.parametrize("put_back", ["retry", "release"])
def test_a_row_behind_one_that_was_put_back_cannot_be_completed(outbox: Outbox, put_back: str) -> None:
    first, _second = append(outbox, "a.created", "a.updated", key="account-1")
    held = claim(outbox)
    with outbox.engine.begin() as tx:
        if put_back == "retry":
            outbox.retry(tx, held, first, "ValueError")
        else:
            outbox.release(tx, held, [first], delay=60, error="down")

    assert complete(outbox, held) == []

    drain(outbox)
    assert [row.position for row in rows(outbox)] == [1, 2]


def test_a_failed_row_holds_up_nobody_and_its_copy_comes_last(outbox: Outbox) -> None:
    outbox.attempt_limit = 1
    first, second, third = append(outbox, "a.created", "a.updated", "a.deleted", key="account-1")
    held = claim(outbox)
    with outbox.engine.begin() as tx:
        assert outbox.retry(tx, held, first, "ValueError") == "failed"

    assert complete(outbox, held) == [second, third]
    with outbox.engine.begin() as tx:
        copy = outbox.redrive(tx, first)
    drain(outbox)

    assert [(row.id, row.position) for row in rows(outbox)] == [(first, None), (second, 1), (third, 2), (copy, 3)]


def test_a_row_that_is_taken_while_it_is_being_completed_keeps_back_those_behind_it(outbox: Outbox) -> None:
    """The late relay has begun to complete both when the first one's new claim is committed."""
    first, _second = append(outbox, "a.created", "a.updated", key="account-1")
    claim(outbox), freeze(outbox)
    relay_b = claim(outbox)
    freeze(outbox)
    settled: list[int] = []

    with outbox.engine.begin() as tx:
        relay_c = outbox.claim(tx)
        assert [row.id for row in relay_c.rows] == [first]
        late = threading.Thread(target=lambda: settled.extend(complete(outbox, relay_b)))
        late.start()
        wait_for_a_lock_waiter(outbox)
    late.join()

    assert settled == []
    assert complete(outbox, relay_c) == [first]


def test_two_transactions_that_append_under_one_key_take_turns(outbox: Outbox) -> None:
    """An id is given when a row is written, and others see the row when it is committed: one order for both."""

    def append_another() -> None:
        with outbox.engine.begin() as tx:
            tx.execute(text("SET LOCAL lock_timeout = '60s'; SET LOCAL statement_timeout = '60s'"))
            outbox.append(tx, Event("a.updated", {}, ordering_key="account-1"))

    with outbox.engine.begin() as tx:
        outbox.append(tx, Event("a.created", {}, ordering_key="account-1"))
        another = threading.Thread(target=append_another)
        another.start()
        wait_for_a_lock_waiter(outbox, unless=lambda: not another.is_alive())
        append(outbox, "b.created", key="account-2")  # waits for nobody
        complete(outbox, claim(outbox))
    another.join()
    drain(outbox)

    assert [row.event_type for row in rows(outbox)] == ["a.created", "b.created", "a.updated"]
    assert inversions(outbox) == []


def test_whatever_runs_at_once_rows_of_one_key_are_completed_in_their_order(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chassis.outbox.store.CLAIM_SECONDS", 0.05)
    outbox.attempt_limit = 1_000
    enough, began = threading.Event(), time.monotonic()

    def over_and_over(work: Callable[[random.Random, list[Claim]], None], seed: int) -> None:
        chance, asleep = random.Random(seed), list[Claim]()
        while not enough.is_set():
            work(chance, asleep)

    def publish(chance: random.Random, _asleep: list[Claim]) -> None:
        append(outbox, *["a.updated"] * chance.randrange(1, 6), key=chance.choice(["a", "b", "c"]))

    def work(chance: random.Random, asleep: list[Claim]) -> None:
        """Claim, and settle one of the claims of this worker: a later claim may have been taken from it meanwhile."""
        asleep.append(claim(outbox, chance.randrange(1, 12)))
        if len(asleep) < chance.randrange(1, 4):
            return
        held = asleep.pop(chance.randrange(len(asleep)))
        settled = {row.id for row in held.rows if chance.random() < 0.8}
        with outbox.engine.begin() as tx:
            outbox.complete(tx, held, sorted(settled))
        with outbox.engine.begin() as tx:
            if chance.random() < 0.8:  # else its worker is lost
                rest = [row.id for row in held.rows if row.id not in settled]
                outbox.release(tx, held, rest, delay=chance.choice([0, 0.01, 0.05]), error="down")

    jobs = [publish, work, work, work]
    with ThreadPoolExecutor(len(jobs)) as threads:
        running = [threads.submit(over_and_over, job, seed) for seed, job in enumerate(jobs)]
        while statuses(outbox).get("completed", 0) <= 100 and time.monotonic() - began < 60:
            time.sleep(0.1)
        enough.set()
        for job in running:
            job.result()
    assert statuses(outbox).get("completed", 0) > 30
    assert inversions(outbox) == []

    drain(outbox)
    assert inversions(outbox) == []


def machine(outbox: Outbox) -> type[RuleBasedStateMachine]:
    """Workers that claim, settle any part of what they hold, freeze and come back, in any order Hypothesis tries."""
    outbox.attempt_limit = 6

    class Workers(RuleBasedStateMachine):
        claims = Bundle("claims")

        @initialize()
        def begin(self) -> None:
            with outbox.engine.begin() as tx:
                tx.execute(text("DELETE FROM identity.outbox"))
            append(outbox, *["a.updated"] * 3, key="a")

        @rule(key=st.sampled_from(["a", "b", None]), count=st.integers(1, 3))
        def append(self, key: str | None, count: int) -> None:
            append(outbox, *["a.updated"] * count, key=key)

        @rule(target=claims, batch=st.integers(1, 6), frozen=st.booleans())
        def claim(self, batch: int, frozen: bool) -> Claim:
            """`frozen`: all others have stood still for so long that this worker may take what they hold."""
            if frozen:
                freeze(outbox)
            return claim(outbox, batch)

        @rule(held=claims)
        def complete_all(self, held: Claim) -> None:
            complete(outbox, held)

        @rule(
            held=claims,
            share=st.sets(st.integers(0, 3), min_size=1),
            how=st.sampled_from(["complete", "release", "retry"]),
        )
        def settle_some(self, held: Claim, share: set[int], how: str) -> None:
            ids = [row.id for place, row in enumerate(held.rows) if place in share]
            with outbox.engine.begin() as tx:
                if how == "complete":
                    outbox.complete(tx, held, ids)
                elif how == "release":
                    outbox.release(tx, held, ids, delay=60, error="down")
                else:
                    [outbox.retry(tx, held, row_id, "ValueError") for row_id in ids]

        @rule()
        def wait(self) -> None:
            make_due(outbox)
            with outbox.engine.begin() as tx:
                outbox.fail_abandoned(tx)
                [outbox.redrive(tx, row.id) for row in outbox.failed(tx)]

        @invariant()
        def in_order(self) -> None:
            assert inversions(outbox) == []

        def teardown(self) -> None:
            drain(outbox)
            assert inversions(outbox) == []

    return Workers


def test_workers_that_freeze_and_come_back_in_any_order_never_invert_the_feed(outbox: Outbox) -> None:
    # Not shrunk: that takes minutes on a real database, and the steps are printed as they are.
    tried = settings(max_examples=25, stateful_step_count=25, phases=[Phase.reuse, Phase.generate])
    run_state_machine_as_test(machine(outbox), settings=tried)
