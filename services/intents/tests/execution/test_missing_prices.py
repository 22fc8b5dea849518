"""What limits refuse for want of a price alone waits for the price, and is decided by it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from controls.app import create_app as create_controls
from tip_testing.commands import batch, create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from ..serving import create_app, introduce
from ..test_controls import limits
from .test_account_reads import UNHURRIED


@pytest.fixture(scope="module")
def app(platform: Platform) -> Iterator[Flask]:
    app = create_app(platform.web_environment("intents", LOG_LEVEL="warning", QUOTE_WAIT_SECONDS="5"))
    yield app
    app.extensions["deps"].engine.dispose()


@pytest.fixture(scope="module", autouse=True)
def reconciler(start: Callable[..., Any]) -> None:
    start("reconciler", **UNHURRIED)


@pytest.fixture(scope="module", autouse=True)
def priced(paper: Any) -> None:
    for symbol in ("FIRST", "SECOND", "THIRD"):
        paper.quote(symbol, "50", "52")


def codes(answer: Any) -> list[str]:
    return [reason["code"] for reason in answer.json["reasons"]]


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 201), ("?dry_run=false", 201), ("?dry_run=true", 200)],
    ids=["fast path", "Flask", "dry run"],
)
def test_the_first_market_order_of_a_symbol_is_decided_by_its_price(desk, query, status):
    limits(desk, max_notional=1000)

    passed = desk.submit(create("FIRST", "10"), query=query)
    refused = desk.submit(create("SECOND", "20"), query=query)

    assert (passed.status_code, passed.json["controls"]["facts"]["reference_price"]["value"]) == (status, "51.0")
    assert codes(refused) == ["NOTIONAL_ABOVE_LIMIT"]


def test_the_first_order_under_a_collar_is_decided_by_the_price(desk):
    limits(desk, price_collar_bps=500)

    assert desk.submit(limit("FIRST", price="50")).status_code == 201
    assert codes(desk.submit(limit("FIRST", price="40"))) == ["PRICE_OUTSIDE_COLLAR"]


def test_a_price_that_became_too_old_is_read_again(desk):
    limits(desk, max_notional=1000)
    desk.created(create("FIRST", "10"))
    desk.execute(
        "UPDATE intents.quote SET traded_at = now() - interval '2 minutes', quoted_at = now() - interval '2 minutes', "
        "read_at = now() - interval '2 minutes' WHERE account_id = :account_id"
    )

    assert desk.submit(create("FIRST", "10")).status_code == 201


@pytest.mark.parametrize("atomic", [False, True])
def test_the_first_orders_of_a_batch_are_decided_by_their_prices(desk, atomic):
    limits(desk, max_notional=1000)
    body = batch(*(create(symbol, "10") for symbol in ("FIRST", "SECOND", "THIRD"))) | {"atomic": atomic}

    answer = desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers)

    assert [result["status"] for result in answer.json["results"]] == [201, 201, 201]
    assert [row["symbol"] for row in sorted(desk.rows("action"), key=lambda row: row["sequence"])] == [
        "FIRST", "SECOND", "THIRD",
    ]  # fmt: skip


def test_a_replacement_is_decided_by_the_price_of_its_intent(desk):
    intent_id = desk.created(create("FIRST", "10"))["intent_id"]
    limits(desk, max_notional=1000)

    assert desk.submit(replace(intent_id, Market={"quantity": "15"})).status_code == 201


def test_prices_of_what_else_is_open_are_read_for_the_gross_exposure(desk):
    desk.created(create("SECOND", "10"))
    limits(desk, max_gross_exposure=1000)

    assert desk.submit(create("FIRST", "9")).status_code == 201
    assert codes(desk.submit(create("FIRST", "9"))) == ["GROSS_EXPOSURE_ABOVE_LIMIT"]


@pytest.fixture(scope="module")
def organization(app: Flask, identity: IdentityFixtures) -> Organization:
    made = identity.organization(entitlements=("controls_premium", "trading_live"))
    introduce(app, made.api_keys["paper"])
    return made


@pytest.fixture(scope="module")
def controls(platform: Platform) -> Iterator[FlaskClient]:
    app = create_controls(platform.web_environment("controls", LOG_LEVEL="warning", QUOTE_WAIT_SECONDS="5"))
    yield app.test_client()
    app.extensions["deps"].engine.dispose()


@pytest.mark.parametrize(("quantity", "expected"), [("10", []), ("20", ["NOTIONAL_ABOVE_LIMIT"])])
def test_a_preview_of_the_first_order_decides_by_the_price_as_its_submit_does(desk, controls, quantity, expected):
    limits(desk, max_notional=1000)
    path = f"/v1/controls/accounts/{desk.account_id}/preview"
    credential = {"Authorization": f"Bearer {desk.organization.tokens['admin']}"}

    preview = controls.post(path, json=create("FIRST", quantity), headers=credential)

    assert codes(preview) == expected and preview.json["facts"]["reference_price"] == "51.0"
    submit = desk.submit(create("FIRST", quantity))
    assert [reason["code"] for reason in submit.json.get("reasons", ())] == expected
