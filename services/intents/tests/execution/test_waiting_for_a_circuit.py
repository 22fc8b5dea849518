"""What waits for an open circuit costs little while it waits, and has its turn once the circuit lets it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import control_rules
from intents.execution import store
from intents.execution.lanes import Lane
from intents.execution.model.commands import LeasedCommand
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.tries import ALL, Tries
from intents.execution.model.verdicts import Unknown
from intents.execution.recorder import record
from intents.execution.store import Shares
from intents.execution.wait_queue import SPREAD_SECONDS, WAITING_SECONDS, waits
from intents.model import Status
from tip_testing.commands import cancel, create, limit
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually

from ..broker_side import accept
from ..conftest import Desk
from .conftest import Paper
from .sending import NOW, ORGANIZATION, leased_command, sending_facts

LANE = "paper paper"
LEASE_SECONDS = 600
NONE = Tries(0)
NOBODY = UUID(int=0)


@pytest.fixture(autouse=True)
def nothing_due(admin: Any) -> None:
    """What other tests have left is out of the way."""
    admin.exec_driver_sql("UPDATE intents.intent SET open_actions = 0, lease_until = NULL")


@pytest.fixture
def desk(new_desk: Callable[..., Desk]) -> Desk:
    return new_desk()


def claim(desk: Desk, tries: Tries = ALL, room: int = 1000, after: UUID = NOBODY) -> list[LeasedCommand]:
    """`after`: whose try it was last."""
    shares = {LANE: Shares(room, {}, room, NOBODY, after, tries)}
    return store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS, shares=shares)


def put_back(desk: Desk, commands: Sequence[LeasedCommand], *, has_failed: bool = False) -> None:
    record(
        desk.deps.connections,
        [DispatchResult(command, waits(command, has_failed=has_failed)) for command in commands],
    )


def fail(desk: Desk, commands: Sequence[LeasedCommand]) -> None:
    """The broker did not answer the try."""
    put_back(desk, [replace(command, waiting_since=None) for command in commands], has_failed=True)


def waiting(desk: Desk, count: int) -> list[str]:
    """So many new orders that wait for an open circuit, one after the other."""
    intents = []
    for _ in range(count):
        intents.append(desk.created(create())["intent_id"])
        put_back(desk, claim(desk, NONE))
    return intents


def intents_of(commands: Sequence[LeasedCommand]) -> list[str]:
    return [str(command.intent_id) for command in commands]


def test_nothing_that_waits_is_claimed_without_a_try_and_what_is_new_is(desk):
    waiting(desk, 3)

    assert claim(desk, NONE) == claim(desk, Tries(of_each=0)) == claim(desk, Tries(of={desk.organization.id: 0})) == []

    new = desk.created(create())["intent_id"]
    assert intents_of(claim(desk, NONE)) == [new]


def test_a_try_takes_what_has_waited_longest(desk):
    first, second, third = waiting(desk, 3)

    assert intents_of(claim(desk, Tries(of_each=1))) == [first]
    assert sorted(intents_of(claim(desk))) == sorted([second, third]), "once the circuit is closed the others follow"


def test_a_try_that_came_too_late_leaves_a_command_its_place(desk):
    first, _ = waiting(desk, 2)

    put_back(desk, claim(desk, Tries(of_each=1)))

    assert intents_of(claim(desk, Tries(of_each=1))) == [first]


def test_what_has_failed_goes_to_the_end(desk):
    first, second = waiting(desk, 2)

    fail(desk, claim(desk, Tries(of_each=1)))
    third = waiting(desk, 1)
    desk.execute(f"UPDATE intents.intent SET next_attempt_at = now() WHERE id = '{first}'")
    put_back(desk, claim(desk, NONE), has_failed=True)

    tried = [intents_of(claim(desk, Tries(of_each=1))) for _ in range(3)]
    assert tried == [[second], [first], third], "where it stays while it is not tried"


def test_a_cancel_and_what_may_have_been_sent_come_before_orders(desk):
    accepted = desk.created(limit())["intent_id"]
    accept(desk, accepted, "the-broker-s")
    waiting(desk, 2)
    sent = desk.created(create())["intent_id"]
    [command] = claim(desk, NONE)
    record(desk.deps.connections, [DispatchResult(command, Unknown("timeout", seconds=0.001))])
    put_back(desk, eventually(lambda: claim(desk, NONE)))
    desk.created(cancel(accepted))
    put_back(desk, claim(desk, NONE))

    assert [intents_of(claim(desk, Tries(of_each=1))) for _ in range(2)] == [[sent], [accepted]]


def test_a_cancel_of_what_waits_is_decided_at_once(desk):
    first, second = waiting(desk, 2)
    desk.created(cancel(second))

    [claimed] = claim(desk, NONE)

    assert str(claimed.intent_id) == second and claimed.status is Status.PENDING_CANCEL
    assert intents_of(claim(desk)) == [first]


def test_what_waits_and_what_is_new_share_a_claim(desk):
    old = waiting(desk, 4)
    new = [desk.created(create())["intent_id"] for _ in range(4)]

    assert sorted(intents_of(claim(desk, room=4))) == sorted([*old[:2], *new[:2]])
    assert sorted(intents_of(claim(desk))) == sorted([*old[2:], *new[2:]])


def test_organizations_have_their_tries_by_turns(new_desk):
    desks = sorted((new_desk() for _ in range(3)), key=lambda desk: desk.organization.id)
    queues = [waiting(desk, 2) for desk in desks]

    last, turns = NOBODY, []
    for _ in range(4):
        [claimed] = claim(desks[0], Tries(1, 1), after=last)
        last = claimed.organization_id
        turns.append(str(claimed.intent_id))

    assert turns == [queues[0][0], queues[1][0], queues[2][0], queues[0][1]]


def test_what_waits_is_decided_again_after_some_minutes_and_keeps_its_place(desk):
    first, second = waiting(desk, 2)
    [row] = [row for row in desk.rows("intent") if str(row["id"]) == first]
    put_back_for = row["next_attempt_at"] - row["updated_at"]
    assert put_back_for > timedelta(seconds=WAITING_SECONDS - 1)
    desk.execute("UPDATE intents.intent SET next_attempt_at = now() WHERE account_id = :account_id")

    again = claim(desk, NONE)
    put_back(desk, again)

    assert sorted(intents_of(again)) == sorted([first, second])
    assert intents_of(claim(desk, Tries(of_each=1))) == [first]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 7),
        ({"created_at": NOW - timedelta(hours=1)}, None),
        ({"started_before": NOW}, None),
        ({"type": "CANCEL"}, None),
    ],
    ids=["not yet", "never, as a child", "perhaps sent", "a cancel"],
)
def test_an_order_that_will_be_too_old_waits_until_then(more, expected):
    control = control_rules.TimeControl(1, stale_order_millis=7_000)
    verdict = waits(leased_command(facts=sending_facts(symbol_time=control), **more), has_failed=False)

    if expected:
        assert verdict.seconds == expected
    else:
        assert WAITING_SECONDS <= verdict.seconds <= WAITING_SECONDS + SPREAD_SECONDS


def test_an_allowance_of_one_is_for_what_waits_and_for_what_is_new_by_turns(desk):
    waiting(desk, 40)
    for _ in range(40):
        desk.created(create())

    shares = {LANE: Shares(4, {desk.organization.id: 1}, 4)}
    claims = [store.claim(desk.deps.connections.autocommit(), 4, LEASE_SECONDS, shares=shares) for _ in range(30)]

    assert {len(claimed) for claimed in claims} == {1}
    assert {command.waiting_since is None for [command] in claims} == {True, False}


@pytest.mark.parametrize(
    ("tries", "is_worth_a_claim"),
    [(ALL, True), (Tries(2, 1), False), (Tries(of={ORGANIZATION: 1}), False), (Tries(of={NOBODY: 0}), True)],
    ids=["closed", "open for all", "open for it", "open for another"],
)
def test_while_a_queue_is_emptied_one_claim_follows_the_other_and_a_try_is_followed_by_none(tries, is_worth_a_claim):
    lane = Lane(8, 8, lambda _command: True)
    claimed = [leased_command(waiting_since=NOW) for _ in range(3)]

    at_once = lane.begin(lane.budget(), claimed, tries)

    assert (at_once, lane.end(claimed) == 0) == (is_worth_a_claim, is_worth_a_claim)
    assert (lane.last_try, lane.last_turn) == (ORGANIZATION, NOBODY)
    lane.close()


def test_what_was_not_tried_says_nothing_of_how_quick_calls_are():
    lane = Lane(8, 8, lambda _command: False)
    before = lane.budget().total

    lane.begin(lane.budget(), claimed := [leased_command() for _ in range(100)])
    lane.close()
    lane.end(claimed)

    assert lane.budget().total == before


def test_while_a_broker_is_away_only_tries_cost_something_and_when_it_is_back_all_is_sent(
    desk: Desk, start: Any, tmp_path: Path
) -> None:
    port, orders = reserved_port(), 100
    executor = start("executor", PAPER_BROKER_URL=f"http://127.0.0.1:{port}")
    for _ in range(orders):
        desk.created(limit("SIM.OPEN"))

    def in_queue() -> int:
        return sum(row["waiting_since"] is not None for row in desk.rows("intent"))

    def writes() -> int:
        return sum(row["version"] for row in desk.rows("intent"))

    eventually(lambda: in_queue() >= orders - 2)
    before, began = writes(), time.monotonic()
    counted = eventually(lambda: writes() - before if writes() >= before + 4 else 0)
    seconds = time.monotonic() - began
    paper = Paper(tmp_path, PAPER_BROKER_PORT=str(port))
    try:
        eventually(lambda: {row["status"] for row in desk.rows("intent")} == {"ACCEPTED"})
    finally:
        executor.end()
        paper.stop()

    assert counted < 20 + 10 * seconds, "and not one for each that waits"
    assert len(desk.rows("broker_order")) == orders
