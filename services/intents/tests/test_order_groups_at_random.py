"""Order groups through any story: an independent checker compares the database and the broker's books at each step."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from chassis import crashpoints
from intents.execution.order_groups import tend_order_groups
from intents.execution.overfill import reduce_overordered
from intents.model.groups import GROUPS
from tip_brokers import OrderStatus
from tip_testing import group_checker
from tip_testing.commands import cancel, create
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, one_cancels_other, one_triggers_other

BODIES = {"Bracket": bracket, "OneCancelsOther": one_cancels_other, "OneTriggersOther": one_triggers_other}
PLACES = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("fill"), PLACES, st.integers(1, 10), st.booleans()),
    st.tuples(st.just("fill"), st.just(0), st.just(10), st.booleans()),
    st.tuples(st.just("both"), st.integers(1, 10), st.integers(1, 10)),
    st.tuples(st.just("end"), PLACES, st.sampled_from([OrderStatus.CANCELED, OrderStatus.EXPIRED])),
    st.tuples(st.just("late"), st.integers(1, 3)),
    st.tuples(st.just("cancel"), PLACES),
    st.tuples(st.sampled_from(["send", "send", "send", "reduce", "tend", "repeat"])),
)


class Killed(BaseException):
    """The process that records dies before its commit."""


class Story:
    def __init__(self, desk: Desk, kind: str, *, flatten: bool) -> None:
        self.desk, self.broker, self.roles = desk, Broker(desk), GROUPS[kind].legs
        desk.execute("UPDATE accounts.account SET flatten_excess = :flatten WHERE id = :account_id", flatten=flatten)
        desk.created(BODIES[kind]())
        desk.created(create(side="SELL", quantity="1"))  # of no group: limits count it as ever

    def role(self, place: int) -> str:
        return self.roles[place % len(self.roles)]

    def fill(self, place: int, quantity: int, killed: bool) -> None:
        role = self.role(place)
        self._fill({role: min(Decimal(quantity), self.broker.left(role))}, killed=killed)

    def both(self, *quantities: int) -> None:
        """Two exits at once."""
        roles = self.roles[-2:]
        given = zip(roles, quantities, strict=True)
        self._fill({role: min(Decimal(most), self.broker.left(role)) for role, most in given})

    def _fill(self, quantities: dict[str, Decimal], *, killed: bool = False) -> None:
        wanted = {role: f"{quantity:f}" for role, quantity in quantities.items() if quantity > 0}
        if not wanted:
            return
        if killed:
            self._die(wanted)
        else:
            self.broker.fill_at_once(wanted)

    def _die(self, wanted: dict[str, str]) -> None:
        """The fill happened at the broker; whoever recorded it was killed, and the reconciler finds it later."""
        before = self.desk.rows("intent"), self.desk.rows("intent_group"), self.desk.rows("order_total")
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(crashpoints, "reach", _kill)
            with pytest.raises(Killed):
                self.broker.fill_at_once(wanted)
        assert before == (self.desk.rows("intent"), self.desk.rows("intent_group"), self.desk.rows("order_total"))

    def end(self, place: int, status: OrderStatus) -> None:
        if self.broker.left(self.role(place)) > 0:
            self.broker.end(self.role(place), status)

    def late(self, quantity: int) -> None:
        """The first leg's order, which has ended, is filled further after all."""
        role = self.roles[0]
        order = self.broker.orders.get(role)
        if order and order.status in (OrderStatus.CANCELED, OrderStatus.EXPIRED):
            left = order.quantity - order.filled_quantity
            if left > 0:
                self.broker.fill(role, f"{min(left, Decimal(quantity)):f}")
                self.broker.close(role)

    def cancel(self, place: int) -> None:
        leg = self.broker.legs()[self.role(place)]
        answer = self.desk.submit(cancel(leg["id"]))
        assert answer.status_code in (200, 201) or answer.json["code"] == "intent_terminal", answer.json

    def send(self) -> None:
        self.broker.send()

    def reduce(self) -> None:
        reduce_overordered(self.desk.deps)

    def tend(self) -> None:
        tend_order_groups(self.desk.deps)

    def repeat(self) -> None:
        """The reconciler shows every order once more."""
        self.broker.show_all()

    def check(self) -> list[group_checker.Group]:
        groups = group_checker.read_groups(self.desk.admin, self.desk.account_id, self.broker.books())
        faults = [fault for group in groups for fault in group_checker.always(group)]
        assert faults + group_checker.totals(self.desk.admin, self.desk.account_id, groups) == []
        return groups

    def come_to_rest(self) -> group_checker.Group:
        for _ in range(3):
            self.send()
            self.repeat()
            self.reduce()
            self.tend()
        [group] = self.check()
        assert group_checker.at_rest(group) == []
        return group


def _kill(step: str) -> None:
    if step == "executor.before_commit":
        raise Killed


@pytest.mark.timeout(600)  # stories of many transactions, also on a busy machine
@given(st.sampled_from(sorted(GROUPS)), st.booleans(), st.lists(STEPS, max_size=12))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_story_of_a_group(
    new_desk: Callable[..., Desk], organization: Organization, kind: str, flatten: bool, steps: list[tuple[Any, ...]]
) -> None:
    story = Story(new_desk(organization=organization, broker="fix"), kind, flatten=flatten)

    story.send()
    for name, *arguments in steps:
        getattr(story, name)(*arguments)
        story.check()

    group = story.come_to_rest()
    event(f"{kind}: filled too much {group.excess > 0}, flattened {group.flattened > 0}")


@pytest.mark.parametrize("break_it", ["armed_at = NULL, status = 'PENDING'", "filled_quantity = 5", "quantity = 3"])
def test_the_checker_finds_what_is_wrong(
    new_desk: Callable[..., Desk], organization: Organization, break_it: str
) -> None:
    desk = new_desk(organization=organization, broker="fix")
    story = Story(desk, "Bracket", flatten=False)
    story.send()
    story.fill(0, 10, killed=False)
    story.come_to_rest()

    desk.execute(f"UPDATE intents.intent SET {break_it} WHERE account_id = :account_id AND group_role = 'stop_loss'")

    groups = group_checker.read_groups(desk.admin, desk.account_id, story.broker.books())
    faults = [fault for group in groups for fault in [*group_checker.always(group), *group_checker.at_rest(group)]]
    assert faults or group_checker.totals(desk.admin, desk.account_id, groups)
