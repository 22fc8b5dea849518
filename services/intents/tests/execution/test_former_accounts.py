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
from tip_brokers import BrokerError, CredentialRefused, Order, OrderStatus, OutcomeUnknown, RateLimited, Refused

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

    def __init__(self, login: str = "former", **others: Any) -> None:
        super().__init__(**others)
        self.login = login

    def account_id(self) -> str:
        return self.login

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
        accounts = FormerAccounts(credentials, self._broker, self._note_refused, self._note_out_of_reach, True)
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
    for former in reading.by.values():
        former.error = RateLimited("rate_limited", 900.0)

    assert [reading.compare(known(reading)) for _ in range(3)] == [[]] * 3

    assert {former.calls["open_orders"] for former in reading.by.values()} == {1} and reading.watch.queries.has_unread
    assert reading.watch.paused_until == 0.0 and reading.out_of_reach == []


@pytest.mark.parametrize("error", [CredentialRefused(), Refused("FORBIDDEN", "no"), RateLimited("rate_limited", 900.0)])
def test_another_credential_that_opens_it_is_used_when_one_reads_nothing(reading, error):
    reading.by[reference(reading.desk, "one")].error = error
    orders = known(reading), known(reading, "tip-2", "other")
    reading.by[reference(reading.desk, "other")].others["b2"] = replace(
        FILLED, client_order_id="tip-2", broker_order_id="b2"
    )

    assert [reading.compare(*orders) for _ in range(2)] == [["tip-1", "tip-2"]] * 2

    is_refused = isinstance(error, CredentialRefused)
    assert reading.refused == [reference(reading.desk, "one")] * is_refused and reading.out_of_reach == []


def test_a_credential_of_none_of_the_orders_is_used_if_it_was_seen_to_open_the_account(reading):
    reading.by[reference(reading.desk, "one")].error = CredentialRefused()
    assert reading.compare(known(reading, "tip-1", "other")) == ["tip-1"], "it has logged in"
    give_credential(reading.desk, "today", name="today")
    reading.by[reference(reading.desk, "today")] = Former(login="today")

    assert reading.compare(known(reading)) == ["tip-1"] and reading.out_of_reach == []


@pytest.mark.parametrize("status", ["pending", "active"])
def test_while_a_credential_is_on_its_way_or_lacks_a_part_its_orders_are_unread(reading, status):
    for name in ("one", "other"):
        give_credential(reading.desk, name, name=name, status=status)
    if status == "active":
        reading.by.clear()  # the broker finds no part of the secret: KeyError

    assert reading.compare(known(reading)) == [] and reading.out_of_reach == []
    assert reading.watch.queries.has_unread


def test_orders_of_which_every_credential_is_refused_are_out_of_reach(reading):
    for former in reading.by.values():
        former.error = CredentialRefused()

    assert reading.compare(known(reading)) == [] and reading.out_of_reach == ["tip-1"]
    assert sorted(reading.refused) == sorted(reading.by)


@pytest.mark.parametrize("place", ["error", "unlisted"])
def test_an_order_that_cannot_be_read_there_for_long_is_lost(reading, place):
    for former in reading.by.values():
        setattr(former, place, OutcomeUnknown("http_500"))
    reading.compare(known(reading))
    assert reading.watch.queries.lost() == []

    [since] = reading.watch.queries._unread_since.values()
    reading.watch.paused_elsewhere.clear()
    reading.compare(known(reading))

    assert list(reading.watch.queries._unread_since.values()) == [since], "it does not begin anew"
    reading.watch.queries.lost_seconds = 0.0
    assert reading.watch.queries.lost() == ["tip-1"]
