"""A price that is too old when a command is to be sent is read again; only if that takes too long it is denied."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

import control_rules
from intents.execution.clock import elapsed
from intents.execution.model.commands import ClaimSnapshot, LeasedCommand
from intents.execution.model.local_decisions import not_to_be_sent
from intents.execution.model.verdicts import Decided, RetryLater
from intents.model import Spec, Update
from tip_testing.commands import cancel, create
from tip_testing.waiting import eventually

from ..test_controls import disable, limits
from .sending import NOW, leased_command, sending_facts

SYMBOL = "SIM.OPEN"


@pytest.fixture
def run(start: Any) -> Iterator[Callable[..., None]]:
    """Processes that run until the test has ended."""
    started: list[Any] = []
    yield lambda *arguments, **settings: started.append(start(*arguments, **settings))
    for process in started:
        process.end()


@pytest.fixture
def waiting(desk: Any) -> Any:
    """An intent that was accepted by a price which is too old by now."""
    _price(desk, 0)
    limits(desk, max_notional=1000)
    intent = desk.created(create(SYMBOL))
    _price(desk, 120)
    return intent


def _price(desk: Any, seconds_ago: int, symbol: str = SYMBOL) -> None:
    desk.execute(
        "INSERT INTO intents.quote AS q (account_id, symbol, last, source, traded_at, read_at) "
        "VALUES (:account_id, :symbol, 51, 'paper', now() - make_interval(secs => :age), "
        "now() - make_interval(secs => :age)) ON CONFLICT (account_id, symbol) DO UPDATE SET "
        "traded_at = excluded.traded_at, read_at = excluded.read_at",
        symbol=symbol,
        age=seconds_ago,
    )


def _waits(desk: Any) -> bool:
    [row] = desk.rows("intent")
    return (row["status"], row["reason_code"]) == ("PENDING", "REFERENCE_PRICE_UNKNOWN")


def _events(desk: Any) -> list[Any]:
    rows = sorted(desk.rows("account_event"), key=lambda row: row["sequence"])
    return [row["payload"] for row in rows if row["type"] == "BROKER_ORDER"]


def test_it_waits_for_the_price_and_is_sent_once(desk, waiting, paper, orders, reaches, run):
    paper.quote(SYMBOL, "50", "52")
    run("executor")
    eventually(lambda: _waits(desk))
    assert [row["requested_at"] is not None for row in desk.rows("quote")] == [True]

    run("reconciler")

    reaches(waiting, "ACCEPTED", "PARTIALLY_FILLED", "FILLED")
    assert [order["posts"] for order in orders()] == [1]
    assert [event["reason_code"] for event in _events(desk)].count("REFERENCE_PRICE_UNKNOWN") == 1


def test_it_is_decided_by_the_new_price(desk, waiting, paper, orders, reaches, run):
    paper.quote(SYMBOL, "150", "152")
    run("executor")
    eventually(lambda: _waits(desk))

    run("reconciler")

    assert reaches(waiting, "DENIED")["reason_code"] == "NOTIONAL_ABOVE_LIMIT" and orders() == []


def test_without_a_price_for_too_long_it_is_denied(desk, waiting, orders, reaches, run):
    run("executor", SEND_PRICE_WAIT_SECONDS="2")
    eventually(lambda: _waits(desk))

    assert reaches(waiting, "DENIED")["reason_code"] == "REFERENCE_PRICE_UNKNOWN" and orders() == []
    waited, denied = sorted(desk.rows("account_event"), key=lambda row: row["sequence"])[-2:]
    assert 2 <= (denied["occurred_at"] - waited["occurred_at"]).total_seconds() < 20
    assert [reason["code"] for reason in denied["payload"]["reasons"]] == ["REFERENCE_PRICE_UNKNOWN"]


def test_an_order_that_becomes_stale_meanwhile_expires(desk, waiting, orders, reaches, run):
    desk.execute(
        "INSERT INTO controls.symbol_time (account_id, symbol, organization_id, stale_order_millis) "
        "VALUES (:account_id, :symbol, :organization_id, 1000)",
        symbol=SYMBOL,
        organization_id=desk.organization.id,
    )
    run("executor")

    assert reaches(waiting, "EXPIRED")["reason_code"] == "STALE_ORDER" and orders() == []


def test_prices_of_what_else_is_open_are_requested_for_the_gross_exposure(desk, hold_back, run):
    with hold_back():
        for symbol in ("OTHER", SYMBOL):
            _price(desk, 0, symbol)
        desk.created(create("OTHER"))
        limits(desk, max_gross_exposure=2000)
        desk.created(create(SYMBOL))
    desk.execute("UPDATE intents.intent SET next_attempt_at = 'infinity' WHERE symbol = 'OTHER'")
    _price(desk, 120, "OTHER")

    run("executor")

    eventually(lambda: {row["symbol"] for row in desk.rows("quote") if row["requested_at"]} == {"OTHER"})


def test_what_another_control_refuses_as_well_is_denied_at_once(desk, waiting, orders, reaches, run):
    disable(desk, SYMBOL)
    run("executor")

    assert reaches(waiting, "DENIED")["reason_code"] == "SYMBOL_DISABLED" and orders() == []
    assert len(_events(desk)) == 1


def test_a_cancel_does_not_wait_for_a_price(desk, waiting, orders, reaches, run):
    run("executor")
    eventually(lambda: _waits(desk))

    desk.created(cancel(waiting["intent_id"]))

    assert reaches(waiting, "CANCELED")["reason_code"] == "CANCELED_BEFORE_SENT" and orders() == []


def _unpriced_command(reason_code: str | None, seconds_ago: float, **more: Any) -> LeasedCommand:
    """A market order under a limit that needs a price, whose intent has shown that reason for so long."""
    limit = control_rules.Limits(1, max_notional=Decimal(1000))
    facts = replace(sending_facts(account_limits=limit), has_order_facts=True)
    since = NOW - timedelta(seconds=seconds_ago)
    snapshot = ClaimSnapshot(elapsed(), 1, "AUTO", reason_code, 1, since, 1, 0, None)
    submitted = {"created_at": since, "submitted_at": since} | more
    return leased_command(facts=facts, spec=Spec("Market", {"quantity": "10"}), snapshot=snapshot, **submitted)


@pytest.mark.parametrize(
    ("command", "waits"),
    [
        (_unpriced_command(None, 3600), True),
        (_unpriced_command("CREDENTIAL_INVALID", 3600), True),
        (_unpriced_command("REFERENCE_PRICE_UNKNOWN", 29), True),
        (_unpriced_command("REFERENCE_PRICE_UNKNOWN", 30), False),
        (_unpriced_command("REFERENCE_PRICE_UNKNOWN", 3600, submitted_at=NOW - timedelta(seconds=5)), True),
        (_unpriced_command("REFERENCE_PRICE_UNKNOWN", 29, price_wait=timedelta(seconds=20)), False),
    ],
    ids=["accepted long ago", "waited for something else", "in time", "too long", "a later command", "configured"],
)
def test_the_wait_counts_from_when_the_price_was_first_missing(command: LeasedCommand, waits: bool) -> None:
    decided = not_to_be_sent(command)

    if waits:
        assert isinstance(decided, RetryLater) and decided.code == "REFERENCE_PRICE_UNKNOWN"
    else:
        assert isinstance(decided, Decided) and (decided.update, decided.code) == (
            Update.DENIED,
            "REFERENCE_PRICE_UNKNOWN",
        )
