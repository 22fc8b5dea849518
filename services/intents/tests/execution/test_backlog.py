"""Whose commands wait too long: a pure function of what waits, so that no tenant can be refused for another's."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from intents.execution.model.backlog import Overload, WaitingAccount, overloads

LIMIT = 10.0
OURS, THEIRS = UUID(int=1), UUID(int=2)
PAPER = "paper paper"


def waits(number: int, age: float, organization_id: UUID = OURS, **more: object) -> WaitingAccount:
    account = WaitingAccount(organization_id, UUID(int=number), "paper", "paper", age, in_flight=False)
    return account._replace(**more)  # type: ignore[arg-type]


def scopes(*waiting: WaitingAccount) -> list[str]:
    return [overload.scope for overload in overloads(waiting, LIMIT)]


def account(number: int) -> str:
    return str(UUID(int=number))


def test_an_account_is_behind_when_its_oldest_command_is():
    assert scopes(waits(11, 10.0)) == []
    assert scopes(waits(11, 10.1)) == [account(11)]


def test_one_account_does_not_hold_up_the_others_of_its_organization():
    assert PAPER not in scopes(waits(11, 3600.0), waits(12, 0.1))
    assert PAPER not in scopes(waits(11, 3600.0))


def test_an_organization_is_behind_at_a_broker_when_most_of_its_accounts_are():
    assert scopes(waits(11, 20.0), waits(12, 30.0)) == [account(11), account(12), PAPER]
    assert PAPER in scopes(waits(11, 20.0), waits(12, 30.0), waits(13, 0.0))
    assert PAPER not in scopes(waits(11, 20.0), waits(12, 30.0), waits(13, 0.0), waits(14, 0.0))


def test_accounts_that_wait_for_their_own_commands_say_nothing_about_the_others():
    flooded = [waits(number, 60.0, in_flight=True) for number in (11, 12, 13)]

    assert scopes(*flooded) == [account(11), account(12), account(13)]


def test_brokers_and_environments_are_judged_apart():
    slow = [waits(number, 60.0, broker="alpaca") for number in (11, 12)]
    live = waits(13, 60.0, broker="alpaca", environment="live")

    assert scopes(*slow, live, waits(14, 0.0)) == [account(11), account(12), account(13), "alpaca paper"]


WAITING = st.builds(
    WaitingAccount,
    st.sampled_from([OURS, THEIRS, UUID(int=3)]),
    st.uuids(),
    st.sampled_from(["paper", "alpaca"]),
    st.sampled_from(["paper", "live"]),
    st.sampled_from([0.0, 1.0, 9.9, 10.0, 10.1, 60.0, 3600.0]),
    st.booleans(),
)


def of(organization_id: UUID, found: list[Overload]) -> list[Overload]:
    return [overload for overload in found if overload.organization_id == organization_id]


@given(st.lists(WAITING), st.lists(WAITING))
def test_nothing_that_others_have_waiting_changes_what_an_organization_may_submit(
    waiting: list[WaitingAccount], more: list[WaitingAccount]
) -> None:
    mine = [account for account in waiting if account.organization_id == OURS]
    others = [account for account in more if account.organization_id != OURS]

    assert of(OURS, overloads([*mine, *others], LIMIT)) == overloads(mine, LIMIT)


@given(st.lists(WAITING))
def test_an_organization_is_refused_only_where_two_of_its_own_accounts_are_behind(
    waiting: list[WaitingAccount],
) -> None:
    found = overloads(waiting, LIMIT)

    for broker in {Overload(each.organization_id, f"{each.broker} {each.environment}") for each in waiting}:
        ages = [
            each.age_seconds
            for each in waiting
            if Overload(each.organization_id, f"{each.broker} {each.environment}") == broker
        ]
        if broker in found:
            assert sum(age > LIMIT for age in ages) >= 2
