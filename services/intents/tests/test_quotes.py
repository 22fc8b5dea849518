"""A price is answered with its age; one that is too old is requested again, and nobody waits long for it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from chassis import polling, tenancy
from chassis.principals import Kind, Principal
from intents import store
from intents.store import quotes
from intents.usecases import Reader, holdings
from intents.usecases.deps import Freshness
from tip_testing.commands import create

from .conftest import Desk
from .test_controls import limits


def read(desk: Desk, symbol: str = "ABC") -> Any:
    return desk.client.get(f"/v1/accounts/{desk.account_id}/quotes/{symbol}", headers=desk.headers)


def save(desk: Desk, seconds_ago: float, **prices: str) -> None:
    moment = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    names, values = ", ".join(prices), ", ".join(prices.values())
    desk.execute(
        f"INSERT INTO intents.quote (account_id, symbol, {names}, source, quoted_at, traded_at, read_at) "
        f"VALUES (:account_id, 'ABC', {values}, 'paper', :moment, :moment, :moment)",
        moment=moment,
    )


def next_read(desk: Desk) -> Any:
    [row] = desk.rows("broker_account")
    return row["next_read_at"]


def test_a_fresh_price_is_answered_with_source_and_age(desk: Desk) -> None:
    save(desk, 2, bid="9.5", ask="10.5", last="10")

    shown = read(desk).json

    assert (shown["symbol"], shown["bid"], shown["ask"], shown["last"], shown["source"]) == (
        "ABC", "9.5", "10.5", "10", "paper",
    )  # fmt: skip
    assert 2 <= shown["age_seconds"] < 60 and shown["quoted_at"] and shown["read_at"]
    assert desk.rows("broker_account") == [], "nothing is read for it"


def test_a_price_that_nobody_knows_is_null_and_requested(desk: Desk) -> None:
    shown = read(desk, "btc/usd").json

    assert shown["symbol"] == "BTC/USD" and shown["last"] is shown["age_seconds"] is shown["source"] is None
    assert next_read(desk) <= datetime.now(UTC) + timedelta(seconds=1)
    [row] = desk.rows("quote")
    assert row["requested_at"] and row["organization_id"] == desk.organization.id


def test_an_old_price_is_answered_with_its_age_when_no_newer_one_comes(desk: Desk) -> None:
    save(desk, 600, last="10")

    shown = read(desk).json

    assert shown["last"] == "10" and shown["age_seconds"] >= 600
    assert next_read(desk)


def test_a_price_that_comes_meanwhile_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    save(desk, 600, last="10")
    pauses = []

    def asleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            desk.execute("UPDATE intents.quote SET last = 11, read_at = now() WHERE account_id = :account_id")

    monkeypatch.setattr(polling.time, "sleep", asleep)
    principal = Principal(Kind.USER, "somebody", desk.organization.id)
    patient = replace(desk.deps, freshness=Freshness(5.0, 60.0))
    found = holdings.quote(patient, Reader(principal, desk.account_id), lambda: "ABC")

    assert found.last == 11 and len(pauses) == 3


@pytest.mark.parametrize("symbol", ["%20", "A%00B", "x" * 40, "a b"])
def test_what_is_no_symbol_is_refused(desk: Desk, symbol: str) -> None:
    assert read(desk, symbol).status_code == 422


def keep_prices(desk: Desk, symbols: int) -> None:
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, requested_at) "
        "SELECT :account_id, 'S' || number, now() FROM generate_series(1, :symbols) number",
        symbols=symbols,
    )


def test_reads_take_half_of_the_prices_of_an_account_and_leave_the_rest_to_orders(desk: Desk) -> None:
    keep_prices(desk, quotes.MOST_SYMBOLS_OF_READS)

    answer = read(desk, "ONEMORE")

    assert (answer.status_code, answer.json["code"]) == (409, "limit_reached")
    assert read(desk, "S1").status_code == 200
    limits(desk, max_notional=1000)
    assert desk.submit(create("ONEMORE")).json["reasons"][0]["code"] == "REFERENCE_PRICE_UNKNOWN"
    assert "ONEMORE" in {row["symbol"] for row in desk.rows("quote")}, "its price is requested"


def test_an_account_has_prices_of_so_many_symbols_and_no_more(desk: Desk) -> None:
    keep_prices(desk, quotes.MOST_SYMBOLS)
    limits(desk, max_notional=1000)

    assert desk.submit(create("ONEMORE")).json["reasons"][0]["code"] == "REFERENCE_PRICE_UNKNOWN"
    assert "ONEMORE" not in {row["symbol"] for row in desk.rows("quote")}
    assert read(desk, "S1").status_code == 200


def test_a_key_of_the_other_environment_has_no_prices_read(desk: Desk) -> None:
    """It would act on the account, under its credential."""
    key = {"x-api-key": desk.organization.api_keys["live"]}

    answer = desk.client.get(f"/v1/accounts/{desk.account_id}/quotes/ABC", headers=key)

    assert answer.status_code == 403
    assert desk.rows("quote") == []


def test_a_price_that_nobody_has_wanted_for_a_day_is_forgotten(desk: Desk) -> None:
    save(desk, 90_000, last="10")
    desk.execute("INSERT INTO intents.quote (account_id, symbol, requested_at) VALUES (:account_id, 'NEW', now())")

    with desk.deps.engine.begin() as tx:
        store.prune_quotes(tx)

    assert [row["symbol"] for row in desk.rows("quote")] == ["NEW"]


def test_a_refresh_is_accepted_and_durable(desk: Desk) -> None:
    answer = desk.client.post(f"/v1/accounts/{desk.account_id}/refresh", headers=desk.headers)

    assert (answer.status_code, answer.json) == (202, {"account_id": str(desk.account_id)})
    assert next_read(desk) <= datetime.now(UTC)


def test_a_refresh_repeated_at_once_reads_no_more_than_once_a_second(desk: Desk) -> None:
    desk.execute(
        "INSERT INTO intents.broker_account (account_id, attempted_at, next_read_at) "
        "VALUES (:account_id, now(), now() + interval '1 hour')"
    )
    attempted = desk.rows("broker_account")[0]["attempted_at"]

    desk.client.post(f"/v1/accounts/{desk.account_id}/refresh", headers=desk.headers)

    assert next_read(desk) == attempted + timedelta(seconds=1)


def test_an_account_of_another_organization_is_not_refreshed(desk: Desk, new_desk: Any) -> None:
    answer = new_desk().client.post(f"/v1/accounts/{desk.account_id}/refresh", headers=new_desk().headers)

    assert answer.status_code == 404
    assert desk.rows("broker_account") == []


def test_a_web_process_sees_and_requests_reads_of_its_organization_alone(desk: Desk, new_desk: Any) -> None:
    read(desk)
    stranger, engine = new_desk(), desk.app.extensions["deps"].engine
    with tenancy.serving([stranger.organization.id]), engine.begin() as tx:
        for table in ("broker_account", "quote"):
            assert tx.execute(text(f"SELECT count(account_id) FROM intents.{table}")).scalar() == 0
