"""An accepted command is decided again before it is sent: by the rules of its submit, from the facts of that moment."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

import control_rules
from control_rules import OrderCounts, TradingState
from intents import model
from intents.model import OrderFactsNeeded, Refused, Status, decide, decide_again, without_itself
from tip_broker_alpaca import PAPER
from tip_brokers import Capabilities, ClientIds, Replacement

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
ORGANIZATION, ACCOUNT_ID, INTENT_ID = uuid4(), uuid4(), uuid4()
SMALL = Capabilities(ClientIds.ECHO, kinds={"Limit": ("DAY",)}, replacement=Replacement.NONE)
ACTOR = model.Actor("api_key", "x")

amounts = st.integers(1, 20).map(Decimal)
versions = st.just(1)
times = st.none() | st.sampled_from([time(9), time(11, 59), time(12), time(13), time(18)])
counts = st.none() | st.integers(0, 6)
switches = st.none() | st.builds(control_rules.Switch, st.sampled_from(TradingState), versions)
manuals = st.none() | st.builds(control_rules.ManualControl, st.booleans(), versions)
windows = st.none() | st.builds(control_rules.TimeControl, versions, times, times)
limits = st.none() | st.builds(
    control_rules.Limits,
    versions,
    max_quantity=st.none() | amounts,
    max_notional=st.none() | st.integers(1, 2000).map(Decimal),
    price_collar_bps=st.none() | st.integers(1, 2000),
    max_orders_per_minute=st.none() | st.integers(1, 5),
    max_orders_per_day=st.none() | st.integers(1, 5),
    max_position_quantity=st.none() | amounts,
    max_position_notional=st.none() | st.integers(1, 2000).map(Decimal),
    max_open_orders=st.none() | st.integers(1, 5),
    allow_short=st.none() | st.booleans(),
)
rules = st.builds(
    control_rules.Facts,
    time_zone=st.sampled_from(["UTC", "America/New_York"]),
    account_disabled=st.booleans(),
    account_version=versions,
    organization_switch=switches,
    account_switch=switches,
    symbol_manual=manuals,
    symbol_time=windows,
    account_limits=limits,
    symbol_limits=limits,
    account_orders=st.builds(OrderCounts, counts, counts, counts),
    symbol_orders=st.builds(OrderCounts, counts, counts, counts),
    position_quantity=st.none() | st.integers(-20, 20).map(Decimal),
    open_quantity=st.none() | st.integers(0, 20).map(Decimal),
    opposite_open_quantity=st.none() | st.integers(0, 20).map(Decimal),
    reference_price=st.none()
    | st.builds(
        control_rules.ReferencePrice,
        st.integers(80, 120).map(Decimal),
        st.just("quote"),
        st.sampled_from([NOW, NOW - timedelta(minutes=2)]),
    ),
)


def _spec(kind: str, quantity: Decimal, price: Decimal) -> model.Spec:
    prices = dict.fromkeys(model.KINDS[kind].prices, str(price))
    return model.Spec(kind, {"quantity": str(quantity), **prices})


specs = st.builds(_spec, st.sampled_from(list(model.KINDS)), amounts, st.integers(90, 110).map(Decimal))


def _intent(status: Status, spec: model.Spec, side: str, filled: int) -> model.Intent:
    return model.Intent(
        INTENT_ID, "AAPL", side, "AUTO", spec, spec.quantity, status, Decimal(filled), None, "b", None, None, 1,
        NOW, NOW,
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[model.SubmitFacts, model.Owner, Any]:
    """Facts as a submit finds them, the organization, and a command that is well-formed."""
    environment, side, spec = (
        draw(st.sampled_from(["paper", "live"])),
        draw(st.sampled_from(["BUY", "SELL"])),
        draw(specs),
    )
    entitlements = draw(st.sampled_from([frozenset(), frozenset({"trading_live"})]))
    owner = model.Owner(ORGANIZATION, environment, entitlements)
    known = [model.Account(ACCOUNT_ID, ORGANIZATION, environment, "any", can) for can in (PAPER.capabilities, SMALL)]
    account = draw(st.sampled_from([*known, None]))
    facts = model.SubmitFacts(
        NOW, account, controls=draw(rules) if account else None, has_order_facts=draw(st.booleans())
    )
    if draw(st.booleans()):
        return facts, owner, model.Create({}, "AAPL", side, "AUTO", spec)
    filled = draw(st.integers(0, int(spec.quantity) - 1))
    working = _intent(Status.ACCEPTED, spec, side, filled)
    return replace(facts, intent=working if account else None), owner, model.Replace({}, INTENT_ID, spec)


def _sent(facts: model.SubmitFacts) -> model.SubmitFacts:
    """The same facts when the command is to be sent: its intent is there, and waits for it."""
    spec = model.Spec("Market", {"quantity": "1"})
    intent = replace(facts.intent or _intent(Status.PENDING, spec, "BUY", 0))
    return replace(facts, intent=replace(intent, status=Status.PENDING_REPLACE if facts.intent else Status.PENDING))


@given(cases())
def test_submit_and_sending_decide_alike_by_equal_facts(case: tuple[model.SubmitFacts, model.Owner, Any]) -> None:
    facts, owner, command = case

    submitted = decide(facts, model.Submission(ACCOUNT_ID, command, ACTOR, owner))
    sent = decide_again(_sent(facts), owner, command)

    if isinstance(submitted, Refused):
        assert isinstance(sent, Refused) and type(sent.error) is type(submitted.error)
        assert getattr(sent.error, "reasons", None) == getattr(submitted.error, "reasons", None)
    elif isinstance(submitted, OrderFactsNeeded):
        assert sent == submitted
    else:
        assert sent is None


def _facts(**controls: Any) -> model.SubmitFacts:
    account = model.Account(ACCOUNT_ID, ORGANIZATION, "paper", "paper", PAPER.capabilities)
    found = control_rules.Facts("UTC", account_disabled=False, account_version=1, **controls)
    return model.SubmitFacts(NOW, account, controls=found, has_order_facts=True)


@pytest.mark.parametrize(
    ("age", "left"),
    [
        (timedelta(0), OrderCounts(2, 4)),
        (timedelta(seconds=59), OrderCounts(2, 4)),
        (timedelta(seconds=60), OrderCounts(3, 4)),
        (timedelta(hours=24), OrderCounts(3, 5)),
    ],
)
def test_a_command_does_not_count_itself_in_the_windows_it_is_in(age: timedelta, left: OrderCounts) -> None:
    counted = _facts(account_orders=OrderCounts(3, 5), symbol_orders=OrderCounts(3, None))

    found = without_itself(counted, NOW - age).controls

    assert found and (found.account_orders, found.symbol_orders.last_day) == (left, None)


@pytest.mark.parametrize("state", list(TradingState))
def test_the_platforms_own_reduction_passes_all_controls_but_a_halt(state: TradingState) -> None:
    refusing = _facts(
        account_switch=control_rules.Switch(state, 1),
        symbol_manual=control_rules.ManualControl(manually_disabled=True, version=1),
        symbol_limits=control_rules.Limits(1, max_quantity=Decimal(1)),
    )
    spec = model.Spec("Limit", {"quantity": "10", "limit_price": "5"})
    facts = replace(refusing, intent=_intent(Status.PENDING_REPLACE, spec, "BUY", 2))

    decision = decide_again(facts, None, model.HoldToTotal(INTENT_ID, 0))

    assert isinstance(decision, Refused) if state is TradingState.HALTED else decision is None
