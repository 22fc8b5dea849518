"""GET …/refusals, and the refusals in the log: who was refused what, when and why."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from intents import model, schemas_refusals, store, usecases
from intents.model.refusals import MOST_EVENTS_A_MINUTE
from intents.usecases.refusals import log_refusals
from tip_testing.commands import create, limit, replace

from .conftest import Desk
from .serving import all_pages
from .test_controls import disable, limits, switch


def get(desk: Desk, **query: Any) -> TestResponse:
    named = {name.rstrip("_"): value for name, value in query.items()}
    return desk.client.get(f"/v1/accounts/{desk.account_id}/refusals?{urlencode(named)}", headers=desk.headers)


def listed(desk: Desk, **query: Any) -> list[dict[str, Any]]:
    return all_pages(partial(get, desk), **query)


def events(desk: Desk) -> list[Any]:
    return [row for row in desk.rows("account_event") if row["type"] == "REFUSAL"]


def test_a_refusal_says_who_wanted_what_and_why_not(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    disable(desk)
    desk.submit(create(quantity="7", side="SELL"), X_Request_Id="request-1")
    answer = desk.submit(replace(intent_id), X_Request_Id="request-2")

    replaced, created = get(desk).json["data"]

    assert set(created) == set(schemas_refusals.Refusal().fields)
    assert (created["type"], created["symbol"], created["order_side"]) == ("CREATE", "AAPL", "SELL")
    assert created["spec"] == {"Market": {"time_in_force": "DAY", "quantity": "7"}}
    assert (created["request_id"], replaced["request_id"]) == ("request-1", "request-2")
    assert created["actor"]["type"] == "api_key" and created["actor"]["id"]
    assert replaced["reasons"] == answer.json["reasons"]
    assert (replaced["type"], replaced["order_side"], replaced["ref_intent_id"]) == ("REPLACE", "BUY", intent_id)
    assert replaced["spec"]["Limit"]["quantity"] == "20"
    assert created["created_at"] <= replaced["created_at"]


def test_refusals_are_found_by_symbol_code_and_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intents.usecases.orders.CANDIDATES", 2)
    disable(desk, "AAPL")
    disable(desk, "MSFT")
    for symbol in ("AAPL", "MSFT", "AAPL"):
        desk.submit(create(symbol=symbol))
    switch(desk, "HALTED")
    desk.submit(create(symbol="TSLA"))
    newest, *_, oldest = listed(desk)

    assert [refusal["symbol"] for refusal in listed(desk, limit=1)] == ["TSLA", "AAPL", "MSFT", "AAPL"]
    assert [refusal["symbol"] for refusal in listed(desk, symbol="msft", limit=1)] == ["MSFT"]
    assert len(listed(desk, code="SYMBOL_DISABLED", limit=1)) == 3
    assert listed(desk, code="TRADING_HALTED") == [newest]
    assert listed(desk, from_=newest["created_at"]) == [newest]
    assert len(listed(desk, to=newest["created_at"])) == 3
    assert listed(desk, to=oldest["created_at"]) == listed(desk, code="SYMBOL_DENIED") == []


@pytest.mark.parametrize(("name", "value"), [("from", "x"), ("to", "1"), ("symbol", "A B"), ("code", "NO_SUCH_CODE")])
def test_a_filter_that_is_none_is_refused_by_name(desk: Desk, name: str, value: str) -> None:
    answer = get(desk, **{name: value})

    assert (answer.status_code, answer.json["code"]) == (400, "bad_time" if name in ("from", "to") else "bad_filter")
    assert answer.json["detail"].startswith(name)


def test_a_cursor_goes_on_in_its_own_list_only(desk: Desk) -> None:
    disable(desk)
    for _ in range(2):
        desk.submit(create())
    cursor = get(desk, limit=1).json["next_cursor"]

    assert get(desk, limit=1, next_cursor=cursor).status_code == 200
    assert get(desk, symbol="AAPL", next_cursor=cursor).json["code"] == "bad_cursor"


def test_another_organization_sees_nothing(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    stranger = new_desk()

    answer = stranger.client.get(f"/v1/accounts/{desk.account_id}/refusals", headers=stranger.headers)

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


def test_each_refusal_is_an_event_once(desk: Desk) -> None:
    limits(desk, max_quantity=5)
    desk.created(create(quantity="1"))
    desk.submit(create(quantity="6"), X_Request_Id="r")

    assert log_refusals(desk.deps) >= 1
    assert log_refusals(desk.deps) == 0

    [refusal] = get(desk).json["data"]
    [event] = events(desk)
    assert (event["sequence"], str(event["id"])) == (2, refusal["id"])
    assert event["payload"] == {name: value for name, value in refusal.items() if name != "created_at"}
    assert event["occurred_at"].isoformat().startswith(refusal["created_at"][:-1])
    assert desk.created(create(quantity="1"))["sequence"] == 3
    assert desk.get("/verify").json["valid"] is True


def test_refused_orders_do_not_flood_the_log(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intents.model.refusals.MOST_EVENTS_A_MINUTE", 3)
    disable(desk)
    for _ in range(2):
        for _ in range(3):
            desk.submit(create())
        minute = "date_trunc('minute', now()) + (random() * interval '1 second')"
        desk.execute(f"UPDATE intents.refusal SET created_at = {minute} WHERE account_id = :account_id")
        log_refusals(desk.deps)

    assert len(events(desk)) == 3
    assert len(listed(desk)) == 6
    assert sorted(row["sequence"] for row in desk.rows("refusal")) == [0, 0, 0, 1, 2, 3]


def refuse_on_accounts(desk: Desk, count: int) -> None:
    """Refusals on so many accounts of the desk's organization, whose ids come before all others."""
    desk.execute(
        "INSERT INTO intents.refusal (account_id, id, organization_id, type, symbol, actor_type, actor_id, reasons, "
        "created_at) SELECT CAST(lpad(number::text, 32, '0') AS uuid), gen_random_uuid(), :organization_id, 'CREATE', "
        "'AAPL', 'user', 'u', '[]', now() - interval '1 second' FROM generate_series(1, :count) number",
        organization_id=desk.organization.id,
        count=count,
    )


def test_the_refusals_of_an_organization_with_many_accounts_hold_up_no_other(new_desk: Callable[..., Desk]) -> None:
    busy, other = new_desk(), new_desk()
    while log_refusals(busy.deps):
        pass
    refuse_on_accounts(busy, 5)
    disable(other)
    other.submit(create())

    with other.deps.engine.begin() as tx:
        next_accounts = store.accounts_with_unlogged_refusals(tx, limit=2)
    busy.execute("DELETE FROM intents.refusal WHERE organization_id = :id", id=busy.organization.id)

    assert other.account_id in next_accounts


def test_a_refusal_whose_event_was_logged_is_forgotten_like_the_others(desk: Desk) -> None:
    disable(desk)
    desk.submit(create())
    log_refusals(desk.deps)
    desk.execute("UPDATE intents.refusal SET created_at = now() - interval '31 days' WHERE account_id = :account_id")

    usecases.run_maintenance(desk.deps)

    assert listed(desk) == [] and len(events(desk)) == 1


def refused(second: int) -> model.RefusedCommand:
    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
    actor = model.Actor("api_key", "x")
    return model.RefusedCommand(uuid4(), uuid4(), uuid4(), "CREATE", "A", "BUY", None, None, actor, [], None, moment)


@given(st.lists(st.lists(st.integers(0, 200), max_size=150), max_size=4))
def test_however_refusals_are_portioned_a_minute_logs_its_first_ones(portions: list[list[int]]) -> None:
    logged: dict[datetime, int] = {}
    seen: dict[datetime, int] = {}
    for portion in portions:
        batch = [refused(second) for second in sorted(portion)]
        chosen = model.to_log(batch, logged)
        for refusal in batch:
            minute = refusal.created_at.replace(second=0)
            seen[minute] = seen.get(minute, 0) + 1
        for refusal in chosen:
            minute = refusal.created_at.replace(second=0)
            logged[minute] = logged.get(minute, 0) + 1
    assert logged == {minute: min(count, MOST_EVENTS_A_MINUTE) for minute, count in seen.items()}
