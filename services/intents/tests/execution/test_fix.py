"""Orders by FIX 4.4: the platform's processes, a gateway, and QuickFIX as the broker."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from intents.execution.client_order_id import client_order_id
from tip_broker_fix.gateway.credentials import secret_key
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.fix_acceptor import Acceptor, Gateway, prepare, start_gateway
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY
from tip_testing.fix_acceptor.market import Chain
from tip_testing.platform_plugin import Platform
from tip_testing.waiting import eventually

from ..conftest import Desk
from .conftest import give_credential


@dataclass
class Trader:
    """An account at the broker."""

    desk: Desk
    acceptor: Acceptor

    def reaches(self, action: Any, *statuses: str) -> Any:
        def state() -> Any:
            found = self.desk.get(f"/{action['intent_id']}").json["state"]
            return found if found["status"] in statuses else None

        return eventually(state)

    def orders(self, action: Any) -> list[Chain]:
        """What the broker has of the action."""
        name = client_order_id(UUID(action["id"]))
        return [chain for chain in self.acceptor.market().chains if name in chain.names]


@pytest.fixture(scope="module")
def acceptor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptor]:
    pytest.importorskip("quickfix", reason="QuickFIX has no wheel for this Python")
    made = Acceptor(tmp_path_factory.mktemp("acceptor"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def gateways(platform: Platform, acceptor: Acceptor, start: Callable[..., Any]) -> Iterator[list[Gateway]]:
    """Two of them, in the platform's own database."""
    database_url = prepare(platform.admin_url)
    made = [start_gateway(database_url, acceptor.port) for _ in range(2)]
    for kind in ("reconciler", "executor"):
        start(kind, FIX_PAPER_URL=",".join(gateway.url for gateway in made), EXECUTOR_LEASE_SECONDS="20")
    eventually(lambda: any(gateway.is_ready() for gateway in made))
    yield made
    for gateway in made:
        gateway.process.end()


@pytest.fixture
def trader(gateways: list[Gateway], acceptor: Acceptor, new_desk: Callable[..., Desk]) -> Trader:
    desk = new_desk("paper", broker="fix")
    account = f"ACC{desk.account_id.hex[:8]}"
    give_credential(desk, "", account=account, secret_key=secret_key(ACCOUNT_KEY, account), destination="XNAS")
    return Trader(desk, acceptor)


def test_an_order_is_filled(trader: Trader) -> None:
    intent = trader.desk.created(create("PARTS", "10"))

    state = trader.reaches(intent, "FILLED")
    assert (state["filled_quantity"], float(state["average_fill_price"])) == ("10", 20.0)
    assert len(trader.orders(intent)) == 1


def test_an_order_is_replaced_and_canceled(trader: Trader) -> None:
    intent = trader.desk.created(limit("HALF", "10", "5"))
    trader.reaches(intent, "PARTIALLY_FILLED")

    trader.desk.created(replace(intent["intent_id"], Limit={"quantity": "8", "limit_price": "6"}))
    eventually(lambda: trader.orders(intent)[0].quantity == 8)
    trader.desk.created(cancel(intent["intent_id"]))

    assert trader.reaches(intent, "CANCELED")["filled_quantity"] == "5"


def test_an_order_whose_answer_never_came_is_found_and_not_sent_again(trader: Trader) -> None:
    intent = trader.desk.created(create("SILENT", "10"))

    trader.reaches(intent, "FILLED")
    assert len(trader.orders(intent)) == 1


def test_a_refusal_is_the_brokers_own(trader: Trader) -> None:
    intent = trader.desk.created(create("REJECT", "10"))

    assert trader.reaches(intent, "REJECTED")["reason_code"] == "INSUFFICIENT_BUYING_POWER"


@pytest.mark.parametrize(("strategy", "destination"), [("AUTO", ""), ("DIRECT", "XNAS")])
def test_a_direct_order_goes_where_the_credential_says(trader: Trader, strategy: str, destination: str) -> None:
    body = create("FILL", "10")
    body["command"]["payload"]["route_strategy"] = strategy

    intent = trader.desk.created(body)

    trader.reaches(intent, "FILLED")
    assert [order.destination for order in trader.orders(intent)] == [destination]


def test_what_fix_does_not_take_is_refused_at_submit(trader: Trader) -> None:
    refused = trader.desk.submit(create("FILL", "1.5"))

    assert (refused.status_code, refused.json["code"]) == (422, "broker_cannot")
    assert [error["pointer"] for error in refused.json["errors"]] == ["/command/payload/spec/Market/quantity"]


def test_orders_go_on_when_the_gateway_is_killed(trader: Trader, gateways: list[Gateway]) -> None:
    owner = next(gateway for gateway in gateways if gateway.is_ready())
    owner.process.end()

    intent = trader.desk.created(create("FILL", "10"))

    trader.reaches(intent, "FILLED")
    assert len(trader.orders(intent)) == 1
