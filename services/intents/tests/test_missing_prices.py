"""Waiting for a price that nobody reads: briefly, once for a request, and at nobody else's cost."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import EnvironBuilder

from chassis import polling
from intents import model
from intents.store import quotes
from intents.usecases import Deadline, PendingSubmit, Policy, submit
from intents.usecases.deps import Freshness
from tip_testing.commands import batch, create
from tip_testing.platform_plugin import Platform

from .conftest import Desk
from .serving import create_app, send_at_once_timed
from .test_controls import disable, limits

WAIT = 0.6


@pytest.fixture(scope="module")
def app(platform: Platform) -> Iterator[Flask]:
    app = create_app(platform.web_environment("intents", LOG_LEVEL="warning", QUOTE_WAIT_SECONDS=str(WAIT)))
    yield app
    app.extensions["deps"].engine.dispose()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited for prices, each time."""
    found: list[float] = []

    def asleep(seconds: float) -> None:
        found.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic))
    return found


def timed(send: Callable[[], Any]) -> tuple[Any, float]:
    began = time.monotonic()
    return send(), time.monotonic() - began


def codes(answer: Any) -> list[str]:
    return [reason["code"] for reason in answer.json["reasons"]]


def requested(desk: Desk) -> set[str]:
    return {row["symbol"] for row in desk.rows("quote") if row["requested_at"]}


def test_without_a_price_in_time_it_is_refused_and_the_price_is_requested(desk: Desk) -> None:
    limits(desk, max_notional=1000)

    answer, seconds = timed(lambda: desk.submit(create()))

    assert answer.status_code == 422 and codes(answer) == ["REFERENCE_PRICE_UNKNOWN"]
    assert WAIT <= seconds < 10 * WAIT
    assert requested(desk) == {"AAPL"} and desk.rows("broker_account")[0]["next_read_at"] <= datetime.now(UTC)
    assert len(desk.rows("refusal")) == 1, "refused once, however often it was decided"


def test_what_is_refused_for_another_reason_as_well_does_not_wait(desk: Desk, pauses: list[float]) -> None:
    limits(desk, max_notional=1000)
    disable(desk)

    answer = desk.submit(create())

    assert sorted(codes(answer)) == ["REFERENCE_PRICE_UNKNOWN", "SYMBOL_DISABLED"]
    assert pauses == [] and requested(desk) == set()


@pytest.mark.parametrize("atomic", [False, True])
def test_a_batch_waits_once_for_all_its_prices(desk: Desk, atomic: bool) -> None:
    limits(desk, max_notional=1000)
    symbols = {f"S{number}" for number in range(30)}
    body = batch(*(create(symbol) for symbol in sorted(symbols))) | {"atomic": atomic}

    answer, seconds = timed(lambda: desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers))

    assert {result["status"] for result in answer.json["results"]} == ({422, 424} if atomic else {422})
    assert requested(desk) == symbols
    assert WAIT <= seconds < len(symbols) * WAIT / 2


def test_a_price_that_was_just_read_is_not_waited_for_again(desk: Desk, pauses: list[float]) -> None:
    limits(desk, max_notional=1000)
    desk.execute("INSERT INTO intents.quote (account_id, symbol, read_at) VALUES (:account_id, 'AAPL', now())")

    assert codes(desk.submit(create())) == ["REFERENCE_PRICE_UNKNOWN"]
    assert pauses == [] and requested(desk) == set()


def test_beyond_its_symbols_an_account_waits_for_no_price(desk: Desk, pauses: list[float]) -> None:
    limits(desk, max_notional=1000)
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, requested_at) "
        "SELECT :account_id, 'S' || number, now() FROM generate_series(1, :most) number",
        most=quotes.MOST_SYMBOLS,
    )

    assert codes(desk.submit(create("ONEMORE"))) == ["REFERENCE_PRICE_UNKNOWN"]
    assert pauses == [] and len(desk.rows("quote")) == quotes.MOST_SYMBOLS


def test_of_a_batch_as_many_prices_are_requested_as_the_account_may_have(desk: Desk) -> None:
    limits(desk, max_notional=1000)
    desk.execute(
        "INSERT INTO intents.quote (account_id, symbol, requested_at) "
        "SELECT :account_id, 'S' || number, now() FROM generate_series(1, :most) number",
        most=quotes.MOST_SYMBOLS - 2,
    )

    body = batch(*(create(symbol) for symbol in ("A", "B", "C", "S1")))
    desk.client.post(f"{desk.path}/batch", json=body, headers=desk.headers)

    assert len(desk.rows("quote")) == quotes.MOST_SYMBOLS


def test_nobody_else_waits_for_a_price(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    other = new_desk()
    limits(desk, max_notional=1000)
    post = {"method": "POST"}
    waiting = [EnvironBuilder(path=desk.path, json=create(f"W{n}"), headers=desk.headers, **post) for n in range(12)]
    free = [EnvironBuilder(path=other.path, json=create(), headers=other.headers, **post) for _ in range(4)]

    answers = send_at_once_timed(desk.app, [*waiting, *free])

    assert {answer.status_code for answer, _ in answers[:12]} == {422}
    assert {answer.status_code for answer, _ in answers[12:]} == {201}
    assert max(seconds for _, seconds in answers[12:]) < max(seconds for _, seconds in answers[:12]) / 2


def test_the_wait_ends_when_the_broker_has_no_price(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(desk, max_notional=1000)
    pauses = []

    def asleep(seconds: float) -> None:
        pauses.append(seconds)
        desk.execute("UPDATE intents.quote SET read_at = now() WHERE account_id = :account_id")

    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic))

    assert codes(desk.submit(create())) == ["REFERENCE_PRICE_UNKNOWN"]
    assert len(pauses) == 1


def test_no_transaction_is_open_while_a_price_is_waited_for(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    limits(desk, max_notional=1000)
    open_ones = []

    def asleep(seconds: float) -> None:
        [row] = desk.execute(
            "SELECT count(*) AS number FROM pg_stat_activity WHERE usename = 'tip_intents_web' "
            "AND datname = current_database() AND state LIKE 'idle in transaction%'"
        )
        open_ones.append(row.number)
        time.sleep(seconds)

    monkeypatch.setattr(polling, "time", SimpleNamespace(sleep=asleep, monotonic=time.monotonic))
    desk.submit(create())

    assert open_ones and set(open_ones) == {0}


def test_the_wait_ends_with_the_time_of_the_request(desk: Desk) -> None:
    limits(desk, max_notional=1000)
    patient = replace(desk.deps, freshness=Freshness(5.0, 60.0))
    spec = model.Spec("Market", {"quantity": "10"})
    command = model.Create({}, "AAPL", "BUY", "AUTO", spec)
    owner = model.Owner(desk.organization.id, "paper", frozenset())
    pending = [PendingSubmit(model.Submission(desk.account_id, command, model.Actor("api_key", "x"), owner))]

    [outcome], seconds = timed(lambda: submit(patient, pending, Policy.EACH, Deadline.after(0.5)))

    assert isinstance(outcome, model.ControlRejected) and 0.4 < seconds < 3


def test_the_platform_itself_does_not_wait_for_a_price(desk: Desk, pauses: list[float]) -> None:
    limits(desk, max_notional=1000)
    command = model.Create({}, "AAPL", "BUY", "AUTO", model.Spec("Market", {"quantity": "10"}))
    own = model.Submission(desk.account_id, command, model.Actor("system", "x"), caller=None)

    [outcome] = submit(desk.deps, [PendingSubmit(own)], Policy.EACH)

    assert isinstance(outcome, model.ControlRejected) and pauses == [] and requested(desk) == set()
