"""Whose failures keep whom waiting, and for how long."""

from uuid import UUID

import pytest

from intents.execution.breaker import (
    CLOSED,
    FAILURES,
    FORGET_SECONDS,
    HALF_OPEN,
    LONGEST_TRY_SECONDS,
    OPEN,
    TRIES,
    TURN_SECONDS,
    Breaker,
)
from intents.execution.model.tries import NO_LIMIT, Tries

A, B, C, D = (UUID(int=number) for number in range(1, 5))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock=clock)


def fail(breaker: Breaker, *organizations: UUID, connected: bool = True) -> None:
    for organization_id in organizations:
        breaker.failed(organization_id, connected=connected)


def test_the_circuit_opens_after_failed_connections_in_a_row_and_closes_by_one_success(clock):
    states: list[int] = []
    breaker = Breaker(states.append, clock=clock)
    for _ in range(FAILURES):
        assert breaker.wait(A) == 0
        fail(breaker, A, connected=False)

    assert breaker.wait(A) > 0 and breaker.wait(B) > 0, "there is no line for anybody"
    clock.now += 0.6
    assert breaker.wait(A) == 0, "one may try"
    assert breaker.wait(A) > 0 and breaker.wait(B) > 0, "and only one"
    assert 0 < breaker.failed(A, connected=False) == breaker.wait(A)
    clock.now += 2
    assert breaker.wait(A) == 0
    breaker.succeeded(A)

    assert breaker.wait(A) == breaker.wait(B) == 0
    assert states == [CLOSED, OPEN, HALF_OPEN, OPEN, HALF_OPEN, CLOSED]


@pytest.mark.parametrize("outage", [2.0, 20.0])
@pytest.mark.parametrize("connected", [False, True], ids=["line", "organization"])
def test_a_broker_that_is_back_is_tried_before_a_quarter_of_its_outage_has_passed_again(
    outage, connected, clock, breaker
):
    tries, began = 0, clock.now
    while (next_try := clock.now + breaker.wait(A)) < began + outage:
        clock.now, tries = next_try, tries + 1
        breaker.wait(A)
        fail(breaker, A, connected=connected)

    assert next_try - began <= outage * 1.25 + 0.25
    assert tries <= 30


def test_whoever_waits_for_a_try_that_never_ends_may_try_himself_in_the_end(clock, breaker):
    fail(breaker, *[A] * FAILURES, connected=False)
    clock.now += breaker.wait(A)
    assert breaker.wait(A) == 0

    waited = 0.0
    while (pause := breaker.wait(A)) > 0:
        clock.now, waited = clock.now + pause, waited + pause

    assert 5 < waited <= LONGEST_TRY_SECONDS


def test_failures_of_one_organization_keep_only_that_one_waiting(clock):
    open_circuits: list[int] = []
    breaker = Breaker(organizations_changed=open_circuits.append, clock=clock)
    for _ in range(100):
        fail(breaker, A)
        clock.now += 0.1

    assert breaker.state_name == "closed" and breaker.wait(A) > 0 and breaker.wait(B) == 0
    breaker.succeeded(A)
    assert breaker.wait(A) == 0 and open_circuits == [0, 1, 0]


def test_failures_of_several_organizations_that_are_most_of_all_open_the_circuit_for_them(breaker):
    fail(breaker, A, B, A, B, A)

    assert breaker.state_name == "open" and breaker.wait(A) > 0 and breaker.wait(B) > 0


def test_failures_of_several_organizations_that_are_not_most_of_all_do_not(breaker):
    for organization_id in (C, D):
        breaker.succeeded(organization_id)
    fail(breaker, A, B, A, B, A, B)

    assert breaker.state_name == "closed" and breaker.wait(C) == breaker.wait(D) == 0


def test_who_has_not_failed_tries_at_once_although_the_others_fail_and_closes_the_circuit_by_it(breaker):
    fail(breaker, *[A, B] * FAILURES)

    assert breaker.wait(C) == 0, "the attackers' failures say nothing about it"
    assert breaker.wait(C) > 0, "but it tries before it trusts"
    breaker.succeeded(C)

    assert breaker.state_name == "closed" and breaker.wait(C) == breaker.wait(D) == 0
    assert breaker.wait(A) > 0, "whose own failures still count"


def test_a_slow_try_of_one_organization_does_not_keep_the_next_from_its_own(clock, breaker):
    fail(breaker, *[A] * FAILURES, connected=False)
    clock.now += breaker.wait(A)
    assert breaker.wait(A) == 0

    assert 0 < breaker.wait(B) <= TURN_SECONDS
    clock.now += TURN_SECONDS
    assert breaker.wait(B) == 0


def test_a_try_that_finds_a_line_opens_it_to_all_whatever_becomes_of_the_request(clock, breaker):
    fail(breaker, *[A] * FAILURES, connected=False)
    clock.now += breaker.wait(A)
    assert breaker.wait(A) == 0

    fail(breaker, A)

    assert breaker.state_name == "closed" and breaker.wait(B) == 0


def test_an_answer_to_one_closes_the_circuit_also_for_whoever_still_waits_for_his_own_try(clock, breaker):
    fail(breaker, *[A] * FAILURES, connected=False)
    clock.now += breaker.wait(A)
    assert breaker.wait(A) == 0
    clock.now += TURN_SECONDS
    assert breaker.wait(B) == 0

    breaker.succeeded(B)

    assert breaker.wait(A) == 0


def test_an_organization_that_fails_has_its_try_however_many_others_keep_failing(clock, breaker):
    """Six whose tries time out after three seconds come before the seventh whenever somebody may try."""
    *others, seventh = (UUID(int=number) for number in range(1, 8))
    fail(breaker, seventh, *others, *others)
    assert breaker.state_name == "open"
    tries: dict[UUID, float] = {}

    until = clock.now + 60
    while clock.now < until and breaker.wait(seventh) > 0:
        clock.now += TURN_SECONDS
        for organization_id in [tried for tried, ends in tries.items() if ends <= clock.now]:
            del tries[organization_id]
            fail(breaker, organization_id)
        for organization_id in others:
            if breaker.wait(organization_id) == 0:
                tries[organization_id] = clock.now + 3

    assert clock.now < until


def test_organizations_that_have_not_tried_for_long_are_forgotten(clock, breaker):
    for number in range(1000):
        breaker.failed(UUID(int=number), connected=True)
    clock.now += FORGET_SECONDS + 60

    breaker.wait(UUID(int=5000))

    assert len(breaker._organizations) == 1


def test_without_an_open_circuit_all_that_waits_may_be_claimed(breaker):
    fail(breaker, *[A] * (FAILURES - 1))
    assert breaker.tries() == Tries()

    fail(breaker, A)
    breaker.succeeded(A)

    assert breaker.tries() == Tries()


def test_of_an_organization_with_an_open_circuit_one_command_may_be_claimed_after_each_pause(clock, breaker):
    fail(breaker, *[A] * FAILURES)
    paused = breaker.tries()
    clock.now += breaker.wait(A)
    ended = breaker.tries()
    assert breaker.wait(A) == 0

    assert paused == breaker.tries() == Tries(of={A: 0}), "nor while it tries"
    assert ended == Tries(of={A: 1})
    assert ended.in_all == ended.of_each == NO_LIMIT, "of others all may be"


def test_of_what_waits_for_the_circuit_of_all_a_few_may_be_claimed_after_each_pause(clock, breaker):
    fail(breaker, *[A] * FAILURES, connected=False)
    paused = breaker.tries()
    clock.now += breaker.wait(A)
    ended = breaker.tries()
    assert breaker.wait(B) == 0

    assert paused == Tries(0, 1, {A: 0})
    assert ended == Tries(TRIES, 1)
    assert breaker.tries().in_all == 0, "one at a time"


def test_who_has_not_failed_may_try_while_those_who_have_wait(breaker):
    fail(breaker, *[A, B] * FAILURES)
    assert breaker.state == OPEN

    assert breaker.tries() == Tries(TRIES, 1, {A: 0, B: 0})


def test_a_command_has_failed_until_the_broker_answers_its_organization(breaker):
    first, second = UUID(int=10), UUID(int=11)
    breaker.failed(A, connected=True, command_id=first)
    breaker.succeeded(B)

    breaker.failed(A, connected=False, command_id=second)

    assert breaker.has_failed(A, first) and not breaker.has_failed(B, first)
    assert not breaker.has_failed(A, second), "that there was no connection is not its doing"
    breaker.succeeded(A)
    assert not breaker.has_failed(A, first)
