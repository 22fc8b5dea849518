"""Orders in an account at the broker that is not today's: what is wrong there harms nothing else."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import uuid5

import pytest

from credential_vault import Keyring
from intents.execution.credentials import Credentials, KeyPair
from intents.execution.former_accounts import FormerAccounts
from intents.execution.model.inputs import OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.watches import Watch
from tip_brokers import BrokerError, CredentialRefused, Order, OrderStatus, OutcomeUnknown, RateLimited

from .conftest import PAPER_SECRET, give_credential
from .showing import Shows

NOW = datetime.now(UTC)
FILLED = Order("tip-1", "b1", OrderStatus.FILLED, "ABC", "BUY", "Market", Decimal(1), Decimal(1), Decimal(1), NOW, NOW)


class Former(Shows):
    """One account at the broker, by one key pair."""

    error: BrokerError | None = None
    """What it answers when its open orders are listed,"""
    unlisted: BrokerError | None = None
    """and its executions."""

    def account_id(self) -> str:
        return "former"

    def open_orders(self) -> tuple[Order, ...]:
        found = super().open_orders()
        if self.error:
            raise self.error
        return found

    def executions(self, _after: datetime) -> list[Any]:
        if self.unlisted:
            raise self.unlisted
        return []


@dataclass
class Reading:
    """Comparisons of one account whose orders are in a former one; `by`: what each credential's pair opens there."""

    desk: Any
    by: dict[str, Former]
    watch: Watch
    refused: list[str] = field(default_factory=list)
    out_of_reach: list[str] = field(default_factory=list)

    def compare(self, *orders: KnownOpenOrder) -> list[str]:
        credentials = Credentials(self.desk.deps.engine, PAPER_SECRET, Keyring.from_text(self.desk.platform.vault_key))
        accounts = FormerAccounts(credentials, self._broker, self._note_refused, self._note_out_of_reach)
        return [report.order.client_order_id for report in accounts.differences(self.watch, orders)]

    def _broker(self, _account: WatchedAccount, pair: KeyPair) -> Any:
        return self.by[pair.reference]

    def _note_refused(self, _account_id: object, pair: KeyPair) -> None:
        self.refused.append(pair.reference)

    def _note_out_of_reach(self, order: OutOfReach) -> None:
        self.out_of_reach.append(order.client_order_id)


@pytest.fixture
def reading(desk: Any) -> Reading:
    """With two credentials that open the former account."""
    names = ("one", "other")
    for name in names:
        give_credential(desk, name, name=name)
    watch = Watch(WatchedAccount(desk.account_id, desk.organization.id, "paper", "paper", False, False))
    return Reading(desk, {reference(desk, name): Former(b1=FILLED) for name in names}, watch)


def reference(desk: Any, name: str) -> str:
    return f"{uuid5(desk.account_id, name)}:1"


def known(reading: Reading, client_order_id: str = "tip-1", credential: str = "one") -> KnownOpenOrder:
    return KnownOpenOrder(
        client_order_id, f"b{client_order_id[4:]}", "WORKING", Decimal(0), NOW, reference(reading.desk, credential),
        "former", key=client_order_id, symbol="ABC",
    )  # fmt: skip


def test_what_is_filled_there_is_found(reading):
    assert reading.compare(known(reading)) == ["tip-1"] and reading.refused == reading.out_of_reach == []


def test_while_the_broker_limits_its_rate_it_is_left_alone_and_its_orders_are_unread(reading):
    one = reading.by[reference(reading.desk, "one")]
    one.error = RateLimited("rate_limited", 900.0)

    assert [reading.compare(known(reading)) for _ in range(3)] == [[]] * 3

    assert one.calls["open_orders"] == 1 and reading.watch.queries.has_unread
    assert reading.watch.paused_until == 0.0 and reading.out_of_reach == []


def test_another_credential_that_opens_it_is_used_when_one_is_refused(reading):
    reading.by[reference(reading.desk, "one")].error = CredentialRefused()
    orders = known(reading), known(reading, "tip-2", "other")
    reading.by[reference(reading.desk, "other")].others["b2"] = replace(
        FILLED, client_order_id="tip-2", broker_order_id="b2"
    )

    assert [reading.compare(*orders) for _ in range(2)] == [["tip-1", "tip-2"]] * 2

    assert reading.refused == [reference(reading.desk, "one")] and reading.out_of_reach == []


def test_orders_of_which_every_credential_is_refused_are_out_of_reach(reading):
    for former in reading.by.values():
        former.error = CredentialRefused()

    assert reading.compare(known(reading)) == [] and reading.out_of_reach == ["tip-1"]
    assert sorted(reading.refused) == sorted(reading.by)


@pytest.mark.parametrize("place", ["error", "unlisted"])
def test_an_order_that_cannot_be_read_there_for_long_is_lost(reading, place):
    setattr(reading.by[reference(reading.desk, "one")], place, OutcomeUnknown("http_500"))
    reading.compare(known(reading))
    assert reading.watch.queries.lost() == []

    [since] = reading.watch.queries._unread_since.values()
    reading.compare(known(reading))

    assert list(reading.watch.queries._unread_since.values()) == [since], "it does not begin anew"
    reading.watch.queries.lost_seconds = 0.0
    assert reading.watch.queries.lost() == ["tip-1"]
