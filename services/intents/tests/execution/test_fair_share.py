"""How much of what all share one organization may hold: the rule, threads, what an executor has in hand."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intents.execution.account_limiter import AccountConcurrencyLimiter
from intents.execution.fair_share import allowance, may_take_another
from intents.execution.in_flight import CLAIM, GUARANTEED, InFlight

A, B, C = (UUID(int=number) for number in range(1, 4))


@dataclass(frozen=True)
class Piece:
    """The part of a command that the limiter reads."""

    organization_id: UUID
    account_id: UUID = field(default_factory=uuid4)
    id: UUID = field(default_factory=uuid4)


def test_one_that_is_alone_comes_to_three_quarters_and_leaves_the_rest_free():
    held = 0
    while may_take_another(held, 32 - held):
        held += 1

    assert held == 24


@pytest.mark.parametrize(("places", "held"), [(32, [24, 6, 1, 1]), (8, [6, 1, 1])])
def test_organizations_that_come_one_after_the_other_and_take_all_they_can_leave_a_place_for_the_next(places, held):
    taken: list[int] = []
    for _ in held:
        taken.append(0)
        while may_take_another(taken[-1], places - sum(taken)):
            taken[-1] += 1

    assert taken == held


@given(st.data())
def test_in_whatever_order_places_are_taken_the_last_one_goes_to_an_organization_that_has_none(data):
    places, organizations = data.draw(st.integers(1, 40), "places"), data.draw(st.integers(1, 8), "organizations")
    held = [0] * organizations
    while takers := [number for number in range(organizations) if may_take_another(held[number], places - sum(held))]:
        taker = data.draw(st.sampled_from(takers), "taker")
        assert places - sum(held) > 1 or held[taker] == 0
        held[taker] += 1

    assert sum(held) == places or all(held), "nobody has none while there is a place"
    assert not any(may_take_another(count, 1) for count in held if count), "one that is given back is for who has none"


@given(places=st.integers(8, 200), organizations=st.integers(1, 50))
def test_organizations_that_take_by_turns_come_to_the_same(places, organizations):
    held = [0] * organizations
    while takers := [number for number in range(organizations) if may_take_another(held[number], places - sum(held))]:
        held[min(takers, key=held.__getitem__)] += 1

    assert max(held) - min(held) <= 1


@given(held=st.integers(0, 300), free=st.integers(0, 300))
def test_an_allowance_is_what_can_be_taken_one_after_the_other(held, free):
    taken = 0
    while may_take_another(held + taken, free - taken):
        taken += 1

    assert allowance(held, free) == taken


def test_an_organization_with_many_accounts_leaves_threads_to_the_others():
    limiter = AccountConcurrencyLimiter(threads=32, account_calls=8)
    begun = [limiter.enter(Piece(A)) for _ in range(200)]

    assert sum(begun) == 24
    assert all(limiter.enter(Piece(B)) for _ in range(4)), "who comes later finds a thread at once"


def test_organizations_take_turns_at_threads_and_accounts_within_them():
    limiter = AccountConcurrencyLimiter(threads=4, account_calls=1)
    first = Piece(A)
    waiting = [Piece(A, first.account_id), Piece(A, first.account_id)]
    assert limiter.enter(first) and not any(limiter.enter(piece) for piece in waiting)
    others = [Piece(A) for _ in range(4)] + [Piece(B) for _ in range(4)]
    running = [first, *(piece for piece in others if limiter.enter(piece))]

    ended: list[Any] = []
    while running:
        ended.append(running.pop(0))
        running += limiter.leave(ended[-1])

    assert len(ended) == 11 and set(ended) == {first, *waiting, *others}
    assert [piece for piece in ended if piece.account_id == first.account_id] == [first, *waiting], "each in its order"
    assert sum(piece.organization_id == B for piece in ended[:8]) >= 3, "B does not come after all of A"


@given(st.data())
def test_whatever_comes_and_goes_nobody_has_more_than_its_share_and_nothing_is_lost(data):
    threads, calls = data.draw(st.integers(1, 12), "threads"), data.draw(st.integers(1, 4), "calls")
    limiter, running, entered, ended = AccountConcurrencyLimiter(threads, calls), [], 0, 0
    accounts = {organization_id: [uuid4() for _ in range(3)] for organization_id in (A, B, C)}
    for _ in range(data.draw(st.integers(1, 60), "steps")):
        if running and data.draw(st.booleans(), "ends"):
            running += limiter.leave(running.pop(data.draw(st.integers(0, len(running) - 1))))
            ended += 1
        else:
            organization_id = data.draw(st.sampled_from([A, B, C]))
            piece = Piece(organization_id, data.draw(st.sampled_from(accounts[organization_id])))
            entered += 1
            running += [piece] if limiter.enter(piece) else []
        assert len(running) <= threads
        assert max(Counter(piece.account_id for piece in running).values(), default=0) <= calls
    while running:
        running += limiter.leave(running.pop())
        ended += 1

    assert ended == entered and limiter.blocked() == {}


def test_what_waits_for_its_own_account_is_reported_so_that_nothing_more_of_it_is_claimed():
    limiter = AccountConcurrencyLimiter(threads=8, account_calls=1)
    pieces = [Piece(A, B) for _ in range(3)]
    assert [limiter.enter(piece) for piece in pieces] == [True, False, False]

    assert limiter.blocked() == {B: (A, 2)}


def test_who_has_much_in_hand_may_claim_less_and_who_has_none_always_something():
    in_hand = InFlight()
    nobody = in_hand.budget(32, {})
    in_hand.add([Piece(A)] * 24)
    beside = in_hand.budget(32, {})
    in_hand.add([Piece(B)] * 100)
    flooded = in_hand.budget(32, {})
    in_hand.remove([Piece(A)] * 24 + [Piece(B)] * 100)

    assert nobody.of_others == 24 and nobody.is_ample
    assert beside.allowances == {A: 0} and beside.of_others == 6 and not beside.is_ample
    assert flooded.allowances == {A: 0, B: 0} and flooded.of_others == flooded.total == GUARANTEED
    assert in_hand.budget(32, {}) == nobody


def test_what_waits_for_its_own_account_takes_nobodys_place_in_hand():
    in_hand, account_id = InFlight(), uuid4()
    in_hand.add([Piece(A, account_id)] * 32)

    assert in_hand.budget(32, {account_id: (A, 24)}).allowances == {A: 16}


@pytest.mark.parametrize("most", [32, 1_000])
def test_no_claim_is_larger_than_one_statement_should_take(most):
    assert InFlight().budget(most, {}).total == min(CLAIM, most)
