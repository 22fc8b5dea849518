"""Order groups whose account is deleted."""

from collections.abc import Callable

import pytest

from intents.execution.order_groups import tend_order_groups
from tip_testing.identity_fixtures import Organization

from .conftest import Desk
from .grouping import Broker, bracket, filled_bracket


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """At a broker that does not reserve a position for the first order that closes it."""
    return new_desk(organization=organization, broker="fix")


def delete_account(desk: Desk) -> None:
    desk.execute("UPDATE accounts.account SET deleted_at = now() WHERE id = :account_id")


def test_a_group_of_a_deleted_account_ends_with_its_parent(desk: Desk) -> None:
    desk.created(bracket())
    delete_account(desk)

    broker = Broker(desk)
    broker.send()

    assert broker.statuses() == {"entry": "DENIED", "take_profit": "CANCELED", "stop_loss": "CANCELED"}
    assert {role: leg["reason_code"] for role, leg in broker.legs().items()} == {
        "entry": "ACCOUNT_NOT_FOUND", "take_profit": "PARENT_ENDED", "stop_loss": "PARENT_ENDED",
    }  # fmt: skip


def test_exits_that_are_armed_after_their_account_is_deleted_are_refused(desk: Desk) -> None:
    """The entry was at the broker, whose stream still shows the fill."""
    desk.created(bracket())
    broker = Broker(desk)
    broker.send()
    delete_account(desk)
    broker.fill("entry", "10")

    broker.send()

    assert broker.statuses() == {"entry": "FILLED", "take_profit": "DENIED", "stop_loss": "DENIED"}
    assert {broker.legs()[role]["reason_code"] for role in ("take_profit", "stop_loss")} == {"ACCOUNT_NOT_FOUND"}


def test_a_sibling_of_a_deleted_account_that_is_at_the_broker_waits_for_an_operator(desk: Desk) -> None:
    """Nobody can cancel it there any more: it is not said to be gone."""
    broker = filled_bracket(desk)
    delete_account(desk)

    broker.fill("take_profit", "10")
    broker.send()
    tend_order_groups(desk.deps)

    assert broker.statuses()["take_profit"] == "FILLED"
    assert broker.statuses()["stop_loss"] in ("ACCEPTED", "PENDING_CANCEL")
    assert [row["excess_quantity"] for row in desk.rows("intent_group")] == [0]
