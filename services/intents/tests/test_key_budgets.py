"""The budget of an API key: what counts, what comes back, and that no race exceeds it."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from werkzeug.test import EnvironBuilder, TestResponse

from chassis import keys
from identity.model import Bounds
from intents.model import Update
from tip_testing.commands import cancel, create, limit, replace
from tip_testing.identity_fixtures import IdentityFixtures

from .broker_side import accept, fill, report
from .conftest import Desk
from .serving import create_app, introduce, send_at_once

CODE = "KEY_NOTIONAL_ABOVE_LIMIT"


@dataclass
class Spender:
    """Sends with a key that has a budget."""

    desk: Desk
    key: str

    def send(self, body: Any, query: str = "", **headers: str) -> TestResponse:
        named = {"x-api-key": self.key, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.desk.client.post(self.desk.path + query, json=body, headers=named)

    def bought(self, quantity: str = "10", price: str = "100") -> str:
        answer = self.send(limit("AAPL", quantity, price))
        assert answer.status_code == 201, answer.text
        return str(answer.json["intent_id"])

    @property
    def spent(self) -> Decimal:
        found = self.desk.execute(
            "SELECT spent FROM intents.key_budget b JOIN identity.api_key k ON k.id = b.key_id WHERE prefix = :prefix",
            prefix=keys.prefix(self.key),
        )
        return Decimal(found.scalar() or 0)


@pytest.fixture
def new_spender(identity: IdentityFixtures) -> Callable[..., Spender]:
    def make(desk: Desk, most: str = "2500") -> Spender:
        bounds = Bounds(max_notional_per_day=Decimal(most))
        key = identity.key(desk.organization.id, "paper", bounds=bounds)
        introduce(desk.app, key)
        return Spender(desk, key)

    return make


@pytest.fixture
def spender(desk: Desk, new_spender: Callable[..., Spender]) -> Spender:
    return new_spender(desk)


def codes(answer: TestResponse) -> list[str]:
    return [reason["code"] for reason in answer.json["reasons"]] if answer.status_code == 422 else []


@pytest.mark.parametrize("query", ["", "?dry_run=false"])
def test_orders_pass_until_the_budget_is_spent_and_the_refusal_says_how_much_is(spender: Spender, query: str) -> None:
    answers = [spender.send(limit("AAPL", "10", "100"), query) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, 422]
    [reason] = answers[-1].json["reasons"]
    assert (reason["code"], reason["control"]) == (CODE, "api_key.max_notional_per_day")
    assert reason["message"] == "The API key's orders of the day would come to 3000, of 2500: 2000 are spent."
    assert spender.send(limit("AAPL", "5", "100"), query).status_code == 201, "the budget may be reached exactly"
    assert spender.spent == 2500
    assert spender.desk.submit(limit("AAPL", "10", "100")).status_code == 201, "other keys have no budget"


def test_a_refusal_by_the_budget_is_listed_and_a_dry_run_foresees_it_and_takes_nothing(spender: Spender) -> None:
    spender.bought("20")

    passes, fails = (spender.send(limit("AAPL", quantity, "100"), "?dry_run=true") for quantity in ("5", "6"))
    assert (passes.status_code, codes(fails), spender.spent) == (200, [CODE], 2000)
    spender.send(limit("AAPL", "6", "100"))
    listed = spender.desk.client.get(
        f"/v1/accounts/{spender.desk.account_id}/refusals?code={CODE}", headers={"x-api-key": spender.key}
    )
    assert len(listed.json["data"]) == 1


def test_one_budget_is_for_all_accounts_of_the_key(spender: Spender, new_desk: Callable[..., Desk]) -> None:
    other = Spender(new_desk(organization=spender.desk.organization), spender.key)

    spender.bought("20")

    assert codes(other.send(limit("AAPL", "6", "100"))) == [CODE]
    other.bought("5")


def test_a_repeated_request_counts_once(spender: Spender) -> None:
    body = limit("AAPL", "20", "100")

    answers = [spender.send(body, idempotency_key="once") for _ in range(3)]

    assert [answer.json["id"] for answer in answers] == [answers[0].json["id"]] * 3
    assert spender.spent == 2000


def test_a_replacement_counts_what_it_adds(spender: Spender) -> None:
    intent_id = spender.bought("20")
    accept(spender.desk, intent_id, "b-replaced")

    def replaced(quantity: str, price: str = "100") -> TestResponse:
        return spender.send(replace(intent_id, Limit={"quantity": quantity, "limit_price": price}))

    assert codes(replaced("26")) == [CODE]
    assert replaced("24").status_code == 201
    assert spender.spent == 2400
    report(spender.desk, intent_id, Update.REPLACE_REJECTED)
    report(spender.desk, intent_id, Update.FILLED, execution_id="x", last_quantity=Decimal(20), last_price=Decimal(99))
    assert spender.spent == 2000, "what the rejected replacement had added comes back at the end"


def test_what_at_most_closes_a_position_takes_nothing(spender: Spender) -> None:
    spender.bought("20")
    spender.desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, updated_at)"
        " VALUES (:account_id, 'MSFT', 100, now())"
    )

    exits = create("MSFT", side="SELL", Limit={"quantity": "100", "limit_price": "100"})
    assert spender.send(exits).status_code == 201
    assert spender.send(exits).status_code == 422, "with the first it would open a short position"
    assert spender.spent == 2000


def test_a_market_order_counts_by_the_reference_price_and_is_refused_without_one(spender: Spender) -> None:
    assert codes(spender.send(create("AAPL", "1"))) == ["REFERENCE_PRICE_UNKNOWN"]
    spender.desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, last_price, price_at, price_source, updated_at)"
        " VALUES (:account_id, 'AAPL', 0, 90, now(), 'fill', now())"
    )

    assert spender.send(create("AAPL", "10")).status_code == 201
    assert spender.spent == 900


@pytest.mark.parametrize("update", [Update.DENIED, Update.REJECTED, Update.EXPIRED, Update.FAILED])
def test_an_order_that_ends_unfilled_gives_all_of_it_back(spender: Spender, update: Update) -> None:
    intent_id = spender.bought("20")
    if update not in (Update.DENIED, Update.FAILED):
        report(spender.desk, intent_id, Update.SUBMITTED)

    report(spender.desk, intent_id, update)

    assert spender.spent == 0
    spender.bought("25")


def test_a_canceled_order_gives_back_what_is_not_filled(spender: Spender) -> None:
    intent_id = spender.bought("20")
    order = accept(spender.desk, intent_id, "b-partly")
    fill(spender.desk, order, "5", "99", "x-partly")
    assert spender.send(cancel(intent_id)).status_code == 201
    assert spender.spent == 2000

    report(spender.desk, intent_id, Update.CANCELED)

    assert spender.spent == 500


@pytest.mark.parametrize(("filled", "spent"), [("2", 500), (None, 0)])
def test_an_order_by_its_notional_takes_that_and_keeps_all_or_nothing_of_it(
    spender: Spender, filled: str | None, spent: int
) -> None:
    spender.desk.execute(
        "INSERT INTO intents.position (account_id, symbol, quantity, last_price, price_at, price_source, updated_at)"
        " VALUES (:account_id, 'AAPL', 0, 100, now(), 'fill', now())"
    )
    answer = spender.send(create("AAPL", Market={"notional": "500"}))
    assert (answer.status_code, spender.spent) == (201, 500)
    intent_id = str(answer.json["intent_id"])
    order = accept(spender.desk, intent_id, f"b-notional-{spent}")
    if filled:
        fill(spender.desk, order, filled, "100", f"x-notional-{spent}")
    assert spender.send(cancel(intent_id)).status_code == 201

    report(spender.desk, intent_id, Update.CANCELED)

    assert spender.spent == spent


def test_a_new_day_begins_with_the_whole_budget_and_once_a_day(spender: Spender) -> None:
    intent_id = spender.bought("20")
    spender.desk.execute("UPDATE intents.key_budget SET day_ends_at = date_trunc('day', now(), 'UTC')")
    spender.desk.execute("UPDATE intents.intent SET budget_day_ends_at = date_trunc('day', now(), 'UTC')")

    spender.bought("25")
    report(spender.desk, intent_id, Update.DENIED)

    assert spender.spent == 2500, "what an earlier day gets back is not of this one"
    for zone in ("Pacific/Kiritimati", "Pacific/Niue", "America/New_York", "Asia/Tokyo"):
        spender.desk.execute("UPDATE accounts.account SET time_zone = :zone WHERE id = :account_id", zone=zone)
        assert codes(spender.send(limit("AAPL", "1", "100"))) == [CODE], "no zone begins another day on a day"


def test_batches_keep_to_the_budget_each_by_itself_or_whole(spender: Spender) -> None:
    commands = [limit("AAPL", "10", "100")["command"] for _ in range(3)]

    def batch(**more: Any) -> TestResponse:
        body = {"commands": commands, **more}
        return spender.desk.client.post(f"{spender.desk.path}/batch", json=body, headers={"x-api-key": spender.key})

    assert batch(atomic=True).status_code == 422
    assert spender.spent == 0
    assert [result["status"] for result in batch().json["results"]] == [201, 201, 422]
    assert spender.spent == 2000


def test_a_key_without_a_budget_costs_no_statement(desk: Desk, statements: list[str]) -> None:
    desk.created(create())

    assert "intents_key_budget" not in statements
    assert len(statements) == 2


def accepted_notional(spenders: Sequence[Spender]) -> Decimal:
    """By the log alone: the orders that were accepted of the key, at their limits."""
    total = Decimal(0)
    for spender in spenders:
        for row in spender.desk.rows("action"):
            terms = row["spec"]["Limit"]
            total += Decimal(terms["quantity"]) * Decimal(terms["limit_price"])
    return total


@pytest.mark.parametrize("at_once", [True, False], ids=["fast path", "two processes"])
def test_many_submits_at_once_on_many_accounts_never_exceed_the_budget_and_use_all_of_it(
    desk: Desk, new_desk: Callable[..., Desk], new_spender: Callable[..., Spender], at_once: bool
) -> None:
    first = new_spender(desk, "3000")
    spenders = [first, *(Spender(new_desk(organization=desk.organization), first.key) for _ in range(3))]
    spenders[0].bought("1"), spenders[1].bought("1")  # some accounts have a log already, others do not
    second = create_app(desk.platform.web_environment("intents", LOG_LEVEL="warning"))
    introduce(second, first.key)
    bodies = [limit("AAPL", str(number % 3 + 1), "100") for number in range(48)]
    requests = [(spenders[number % 4].desk.path, body) for number, body in enumerate(bodies)]

    def send(number: int) -> int:
        path, body = requests[number]
        app = second if number % 2 else desk.app
        return app.test_client().post(path, json=body, headers={"x-api-key": first.key}).status_code

    if at_once:
        made = [
            EnvironBuilder(path, method="POST", json=body, headers={"x-api-key": first.key}) for path, body in requests
        ]
        statuses = [answer.status_code for answer in send_at_once(desk.app, made)]
    else:
        with ThreadPoolExecutor(8) as threads:
            statuses = list(threads.map(send, range(48)))

    total = accepted_notional(spenders)
    assert set(statuses) == {201, 422}
    assert first.spent == total <= 3000
    assert total > 2700, "an order of the smallest size was refused although the budget had it"
