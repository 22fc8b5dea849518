"""A broker in a package of its own is installed beside the platform, which is not changed for it."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import requests
from attack_platform import platform
from tip_broker_example.simulator import SECRET, ExampleBroker

from tip_testing.commands import cancel, create, limit
from tip_testing.commands import replace as replacing
from tip_testing.waiting import eventually

PACKAGE = Path(__file__).parents[1] / "shared" / "brokers" / "example"


@dataclass(frozen=True)
class Desk:
    """An account at the example broker."""

    url: str
    admin: dict[str, str]
    broker: ExampleBroker
    account_id: str = ""

    def call(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, f"{self.url}/v1{path}", json=body, headers=self.admin, timeout=60)

    def submit(self, body: Any, client_id: str | None = None, **payload: str) -> requests.Response:
        body["command"]["payload"] |= payload | ({"client_id": client_id} if client_id else {})
        return self.call("POST", f"/accounts/{self.account_id}/intents", body)

    def reaches(self, client_id: str, status: str) -> Any:
        def state() -> Any:
            [order] = self.call("GET", f"/accounts/{self.account_id}/orders?client_id={client_id}").json()["data"]
            return order["state"] if order["state"]["status"] == status else None

        return eventually(state)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    beside = tmp_path_factory.mktemp("installed")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(beside)]
    subprocess.run([sys.executable, *install, str(PACKAGE)], check=True, capture_output=True)
    broker = ExampleBroker()
    with platform(PYTHONPATH=str(beside), EXAMPLE_BROKER_URL=broker.url, RECONCILE_SECONDS="0.5") as running:
        key = running.local["organizations"]["acme"]["api_keys"]["paper"]
        desk = Desk(running.local["base_url"], {"x-api-key": key}, broker)
        made = desk.call("POST", "/accounts", {"name": "x", "broker": "example", "environment": "paper"})
        assert made.status_code == 201, made.text
        desk = replace(desk, account_id=made.json()["id"])
        given = desk.call("POST", f"/accounts/{desk.account_id}/credentials", {"label": "x", "secret": SECRET})
        assert given.status_code == 201, given.text
        yield desk
    broker.stop()


def test_it_is_listed_with_what_it_can_do(desk: Desk) -> None:
    listed = {broker["name"]: broker for broker in desk.call("GET", "/brokers").json()["data"]}

    assert {"alpaca", "example", "paper"} <= listed.keys()
    example = listed["example"]
    assert example["environments"] == ["paper"] and example["needs_credential"]
    assert [part["name"] for part in example["credential"]] == ["login", "token"]
    assert example["capabilities"]["kinds"] == {"Market": ["DAY"], "Limit": ["DAY", "GTC"]}
    assert example["capabilities"]["replacement"] == "none"


def test_its_credential_has_the_form_that_it_describes(desk: Desk) -> None:
    path = f"/accounts/{desk.account_id}/credentials"
    alpacas = {"label": "x", "secret": {"key_id": "k", "secret_key": "s"}}

    pointers = {error["pointer"] for error in desk.call("POST", path, alpacas).json()["errors"]}
    assert pointers == {"/secret/login", "/secret/token", "/secret/key_id", "/secret/secret_key"}


def test_its_environments_are_the_only_ones(desk: Desk) -> None:
    refused = desk.call("POST", "/accounts", {"name": "x", "broker": "example", "environment": "live"})

    assert refused.status_code == 422
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/environment"]


def test_an_order_is_filled_there(desk: Desk) -> None:
    assert desk.submit(create("ABC", "3"), "filled").status_code == 201

    state = desk.reaches("filled", "FILLED")
    assert (state["filled_quantity"], float(state["average_fill_price"])) == ("3", 20.0)
    assert [order["filled"] for order in desk.broker.orders.values() if order["symbol"] == "ABC"] == ["3"]


def test_an_order_that_rests_there_is_canceled(desk: Desk) -> None:
    intent = desk.submit(limit("REST", "1", "5"), "rests").json()
    desk.reaches("rests", "ACCEPTED")

    assert desk.submit(cancel(intent["intent_id"])).status_code == 201
    desk.reaches("rests", "CANCELED")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (create("TOOLONG"), "/command/payload/symbol"),
        (create("ABC", "1.5"), "/command/payload/spec/Market/quantity"),
        (create("ABC", Market={"quantity": "1", "time_in_force": "IOC"}), "/command/payload/spec/Market/time_in_force"),
        (create("ABC", Stop={"quantity": "1", "stop_price": "9"}), "/command/payload/spec"),
    ],
    ids=["symbol", "fraction", "time in force", "kind"],
)
def test_what_it_cannot_do_is_refused_at_once(desk: Desk, body: Any, pointer: str) -> None:
    refused = desk.submit(body)

    assert (refused.status_code, refused.json()["code"]) == (422, "broker_cannot")
    assert [error["pointer"] for error in refused.json()["errors"]] == [pointer]


def test_where_it_does_not_route_nobody_chooses_a_route(desk: Desk) -> None:
    refused = desk.submit(create("ABC"), route_strategy="DIRECT")

    assert [error["pointer"] for error in refused.json()["errors"]] == ["/command/payload/route_strategy"]


def test_what_it_cannot_replace_is_refused_at_once(desk: Desk) -> None:
    intent = desk.submit(limit("REST", "1", "5"), "stays").json()
    desk.reaches("stays", "ACCEPTED")

    refused = desk.submit(replacing(intent["intent_id"]))

    assert (refused.status_code, refused.json()["code"]) == (422, "broker_cannot")
