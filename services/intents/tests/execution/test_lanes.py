"""A broker that is slow holds up nothing that goes to another, not even of the same organization."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intents.execution import store
from intents.execution.lanes import Lane
from intents.execution.store import Shares
from tip_testing.commands import create, limit
from tip_testing.waiting import eventually

from ..broker_side import accept
from ..conftest import Desk
from .conftest import give_credential
from .scripted import PATIENCE_SECONDS, PATIENT, SHOWN, Scripted
from .sending import leased_command

LEASE_SECONDS = 600
SLOW, QUICK = "alpaca paper", "paper paper"
THREADS = 8
ORGANIZATIONS = [UUID(int=number) for number in range(1, 4)]


@pytest.fixture
def nothing_due(desk: Desk) -> None:
    """What other tests have left is out of the way."""
    while store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS):
        pass


@pytest.fixture
def late() -> Iterator[Scripted]:
    """A broker that answers everything, and everything late."""
    made = Scripted()
    made.says(200, {**SHOWN, "account_number": "late"})
    yield made
    made.end()


def test_each_broker_has_its_own_room_in_a_claim(nothing_due, new_desk):
    at_alpaca = new_desk(broker="alpaca")
    at_paper = new_desk(organization=at_alpaca.organization)
    other = new_desk()
    for _ in range(9):
        at_alpaca.created(limit("ABC", "1", "10"))
    for desk in (at_paper, other):
        for _ in range(5):
            desk.created(create(symbol="SIM.OPEN"))

    shares = {SLOW: Shares(2, {}, 9), QUICK: Shares(4, {}, 9)}
    claimed = store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS, shares=shares)
    none_of_alpaca = {SLOW: Shares(0, {}, 9), QUICK: Shares(9, {at_paper.organization.id: 1}, 9)}
    then = store.claim(desk.deps.connections.autocommit(), 1000, LEASE_SECONDS, shares=none_of_alpaca)
    unknown = store.claim(desk.deps.connections.autocommit(), 3, LEASE_SECONDS, of_others=2)

    def counts(commands):
        return [
            sum(command.account_id == desk.account_id for command in commands) for desk in (at_alpaca, at_paper, other)
        ]

    assert {command.lane for command in claimed} == {SLOW, QUICK}
    assert counts(claimed) == [2, 2, 2] and counts(then) == [0, 1, 3] and counts(unknown) == [2, 2, 0]


def test_orders_at_a_broker_that_answers_late_delay_none_of_the_same_organization_at_another(
    new_desk, start, paper, late
):
    paper.quote("PROMPT", "9", "10")
    prompt = new_desk()
    waiting = [new_desk(organization=prompt.organization, broker="alpaca") for _ in range(6)]
    for desk in waiting:
        give_credential(desk, key_id := str(desk.account_id))
        late.slow.add(key_id)
        for _ in range(12):
            desk.created(limit("ABC", "1", "10"))
    late.slow_seconds = 2.5
    settings = {"ALPACA_PAPER_URL": late.url, "BROKER_READ_SECONDS": "4", "EXECUTOR_LEASE_SECONDS": "15"}
    workers = [start("executor", EXECUTOR_THREADS=str(THREADS), **settings), start("reconciler", **settings)]
    eventually(lambda: late.slow_requests() > THREADS)

    before = late.slow_requests()
    for _ in range(3):
        prompt.created(create(symbol="PROMPT"))
    eventually(lambda: {row["status"] for row in prompt.rows("intent")} == {"FILLED"})
    meanwhile = late.slow_requests() - before
    pending = [row["status"] for desk in waiting for row in desk.rows("intent")]
    for worker in workers:
        worker.end()

    assert meanwhile < 6 * THREADS, "they did not stand in line behind those that wait"
    assert "PENDING" in pending, "some still do"


def test_accounts_at_a_broker_that_answers_late_delay_no_comparison_at_another(new_desk, start, scripted, late):
    slow, rounds = 20, 6
    prompt = new_desk()
    waiting = [new_desk(organization=prompt.organization, broker="alpaca") for _ in range(slow)]
    for number, desk in enumerate((*waiting, prompt)):
        accept(desk, desk.created(limit("ABC", "1", "10"))["intent_id"], f"late-{number}")
    for desk in waiting:
        give_credential(desk, key_id := str(desk.account_id))
        late.slow.add(key_id)
    late.slow_seconds = PATIENCE_SECONDS
    urls = {"PAPER_BROKER_URL": scripted.url, "ALPACA_PAPER_URL": late.url}
    start("reconciler", RECONCILE_SECONDS="0.5", **urls, **PATIENT)

    eventually(lambda: Counter(scripted.key_ids)[str(prompt.account_id)] >= rounds, PATIENCE_SECONDS)

    assert 0 < late.slow_requests() < slow, "it did not have to wait for a round of theirs"


def test_a_lane_has_no_more_threads_than_calls():
    permits = threading.Semaphore(0)
    lane = Lane(THREADS, THREADS, lambda _command: permits.acquire())
    first = [leased_command() for _ in range(3)]

    lane.begin(lane.budget(), first)

    assert len(lane._serving) == 3
    permits.release(3)
    lane.close()


@pytest.fixture
def busy_lane() -> Lane:
    """Every thread has a command of one organization."""
    lane = Lane(THREADS, THREADS, lambda _command: True)
    lane.in_flight.add(leased_command(organization_id=ORGANIZATIONS[0]) for _ in range(THREADS))
    return lane


def test_an_end_in_a_busy_lane_leads_to_a_claim_when_the_lane_is_searched_again(busy_lane):
    searched = busy_lane.budget().total
    busy_lane.busy_until = time.monotonic() + 60
    worth_in = [busy_lane.end([leased_command(organization_id=ORGANIZATIONS[0])])]
    skipped = busy_lane.budget().total
    busy_lane.busy_until = time.monotonic()
    worth_in.append(busy_lane.end([leased_command(organization_id=ORGANIZATIONS[0])]))

    assert (searched > 0, skipped) == (True, 0)
    assert worth_in == [pytest.approx(60, abs=5), 0.0]


def test_ends_that_leave_ample_room_lead_to_a_claim_at_once(busy_lane):
    busy_lane.busy_until = time.monotonic() + 60

    worth_in = busy_lane.end([leased_command(organization_id=ORGANIZATIONS[0]) for _ in range(THREADS // 2)])

    assert worth_in == 0.0
    assert busy_lane.budget().total > 0


@given(st.lists(st.sampled_from(ORGANIZATIONS), min_size=1, max_size=60), st.integers(1, 8), st.integers(1, 3))
def test_whatever_is_claimed_of_a_lane_runs_once_and_at_most_so_many_at_a_time(organizations, threads, calls):
    ran, running, most, lock = [], set(), [0], threading.Lock()
    accounts = {organization_id: uuid4() for organization_id in organizations}

    def run(command):
        with lock:
            running.add(command.action_id)
            most[0] = max(most[0], len(running))
        ran.append(command.action_id)
        with lock:
            running.remove(command.action_id)

    lane = Lane(threads, calls, run)
    commands = [leased_command(organization_id=of, account_id=accounts[of]) for of in organizations]
    lane.begin(lane.budget(), commands)
    lane.close()

    assert sorted(ran) == sorted(command.action_id for command in commands)
    assert most[0] <= threads
