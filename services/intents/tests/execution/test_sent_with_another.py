"""Two exits as one order: what is sent, and how the stop's own command finds what became of it."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from intents.execution.client_order_id import client_order_id
from intents.execution.dispatch import Dispatch
from intents.execution.model.commands import KnownOrder, LeasedCommand, Pair
from intents.execution.model.exit_pairs import LOOKS
from intents.execution.model.local_decisions import decide_locally
from intents.execution.model.verdicts import (
    CANCELED_BEFORE_SENT,
    OPERATOR_REQUIRED,
    Decided,
    LegFound,
    OrderFound,
    RetryLater,
    Unknown,
)
from intents.model import Spec, Status
from tip_brokers import NotSent, Order, OrderStatus, OutcomeUnknown, StopExit

from .sending import HALTED, an_intent, sending_facts
from .test_dispatch import LONG_AGO, Market, command, shown

LIMIT = Spec("Limit", {"quantity": "10", "limit_price": "110", "time_in_force": "GTC"})
STOP = Spec("StopLimit", {"quantity": "10", "stop_price": "90", "limit_price": "89", "time_in_force": "GTC"})
HELD = Pair("tip-of-the-stop", STOP, is_held=True, is_started=False, is_settled=False, is_sent=False, is_accepted=False)
SENT = Pair("the limit", LIMIT, is_held=False, is_started=False, is_settled=True, is_sent=True, is_accepted=True)


def run(market: Market, given: LeasedCommand, refreshed: LeasedCommand | None = None) -> Any:
    return Dispatch(market, given, lambda _: refreshed or given).run()


def limit(**more: Any) -> LeasedCommand:
    return command(spec=LIMIT, **{"pair": HELD} | more)


def stop(**more: Any) -> LeasedCommand:
    return command(spec=STOP, **{"pair": SENT} | more)


def at_broker(legs: tuple[Order, ...] | None) -> Market:
    return Market({"b1": shown("b1", name="the limit", legs=legs)})


def leg(name: str = "theirs", **more: Any) -> Order:
    return replace(shown("b2", name=name), **{"kind": "StopLimit"} | more)


def test_the_limit_is_sent_with_the_stop() -> None:
    market = Market()

    assert isinstance(run(market, limit()), OrderFound)
    [sent] = market.sent
    assert sent.stop_exit == StopExit(Decimal(90), Decimal(89))


def test_a_stop_that_was_canceled_since_the_claim_does_not_go_with_the_limit() -> None:
    market = Market()

    run(market, limit(), refreshed=limit(pair=HELD._replace(is_held=False)))

    assert [sent.stop_exit for sent in market.sent] == [None]


def test_the_stop_is_found_as_a_leg_and_nothing_is_sent() -> None:
    market = at_broker((leg(),))

    assert run(market, stop()) == LegFound(leg())
    assert run(market, stop(started_before=LONG_AGO)) == LegFound(leg())
    assert run(market, stop(status=Status.PENDING_CANCEL)) == LegFound(leg())
    assert market.sent == []


@pytest.mark.parametrize(
    "legs",
    [
        (leg(client_order_id(uuid4())),),
        (leg("theirs#b2"),),
        (leg(symbol="XYZ"),),
        (leg(order_side="SELL"),),
        (leg(kind="Limit"),),
        (leg(), leg("another")),
    ],
    ids=["the name of another order of ours", "the key of a duplicate", "symbol", "side", "kind", "two"],
)
def test_what_cannot_be_the_stop_is_not_taken_for_it(legs: tuple[Order, ...]) -> None:
    market = at_broker(legs)

    assert isinstance(run(market, stop()), RetryLater)
    assert market.sent == []


@pytest.mark.parametrize("market", [at_broker(()), Market()], ids=["without its leg", "not at all"])
def test_a_leg_that_the_broker_does_not_show_becomes_the_matter_of_a_person(market: Market) -> None:
    looks = [run(market, stop(absences=count)) for count in range(LOOKS + 2)]

    assert [look.code for look in looks] == [*[None] * LOOKS, OPERATOR_REQUIRED, OPERATOR_REQUIRED]
    assert all(look.absent for look in looks) and market.sent == []


@pytest.mark.parametrize(
    ("market", "leader"),
    [
        (at_broker(None), SENT._replace(is_settled=False, is_started=True)),
        (at_broker(()), SENT),
        (Market(), SENT),
    ],
    ids=["the limit is under way", "its leg is not shown", "it was accepted and is not shown"],
)
def test_the_stop_is_not_sent_while_it_may_be_there(market: Market, leader: Pair) -> None:
    assert isinstance(run(market, stop(pair=leader)), RetryLater)
    assert market.sent == []


@pytest.mark.parametrize(
    ("market", "leader"),
    [
        (at_broker(None), SENT),
        (Market(), SENT._replace(is_accepted=False)),
        (Market(), SENT._replace(is_accepted=False, is_sent=False)),
    ],
    ids=["it went alone", "it never got there", "it was never sent"],
)
def test_a_stop_that_did_not_go_with_the_limit_is_sent_by_itself(market: Market, leader: Pair) -> None:
    assert isinstance(run(market, stop(pair=leader)), OrderFound)
    [sent] = market.sent
    assert (sent.kind, sent.stop_exit) == ("StopLimit", None)


def test_a_query_that_fails_makes_nothing_unknown() -> None:
    market = at_broker(())
    market.errors["find"] = OutcomeUnknown("http_500")

    with pytest.raises(NotSent):
        run(market, stop())


def test_a_leg_that_was_adopted_is_read_and_nothing_is_sent() -> None:
    market = Market({"b2": leg()})

    assert run(market, stop(broker_order_id="b2")) == LegFound(leg())
    assert run(market, stop(broker_order_id="b2", started_before=LONG_AGO, status=Status.PENDING_CANCEL)) == LegFound(
        leg()
    )
    assert market.sent == []


@pytest.mark.parametrize("started_before", [None, LONG_AGO])
def test_an_adopted_leg_that_cannot_be_read_is_read_later(started_before: Any) -> None:
    market = Market({"b2": leg()}, errors={"order": OutcomeUnknown("http_500")})
    given = stop(broker_order_id="b2", started_before=started_before)

    with pytest.raises(NotSent):
        run(market, given)
    looks = [run(Market(), replace(given, absences=count)) for count in (0, LOOKS)]
    assert [look.code for look in looks] == [None, OPERATOR_REQUIRED]


REPLACED = SENT._replace(latest="its replacement")


def replaced_at_broker(first: tuple[Order, ...] | None, second: tuple[Order, ...] | None) -> Market:
    """The Limit as it was, and as it is since a REPLACE, each with these legs."""
    old = replace(shown("b1", name="the limit", legs=first), status=OrderStatus.REPLACED, replaced_by="b3")
    return Market({"b1": old, "b3": shown("b3", name="its replacement", legs=second)})


@pytest.mark.parametrize("legs", [((leg(),), ()), ((), (leg(),)), ((leg(),), (leg(),)), (None, (leg(),))])
def test_the_stop_of_a_limit_that_was_replaced_is_found_with_either_of_its_orders(legs: Any) -> None:
    market = replaced_at_broker(*legs)

    assert run(market, stop(pair=REPLACED)) == LegFound(leg())
    assert market.sent == []


@pytest.mark.parametrize(
    ("market", "leader"),
    [
        (replaced_at_broker((), ()), REPLACED),
        (replaced_at_broker(None, ()), REPLACED),
        (replaced_at_broker(None, None), SENT),
    ],
    ids=["a pair", "a pair by its replacement", "replaced just now"],
)
def test_the_stop_of_a_limit_that_was_replaced_is_not_sent_while_it_may_be_there(market: Market, leader: Pair) -> None:
    assert isinstance(run(market, stop(pair=leader)), RetryLater)
    assert market.sent == []


def test_the_stop_of_a_limit_that_went_alone_and_was_replaced_is_sent_by_itself() -> None:
    assert isinstance(run(replaced_at_broker(None, None), stop(pair=REPLACED)), OrderFound)


def refused(**more: Any) -> LeasedCommand:
    """The stop by itself, on an account that a halt keeps from sending it."""
    return command(spec=STOP, facts=sending_facts(account_switch=HALTED, **more))


def test_a_stop_that_is_refused_before_the_limit_is_sent_does_not_go_with_it() -> None:
    market = Market()

    assert isinstance(run(market, limit(), refreshed=limit(stop_command=refused())), OrderFound)
    assert [sent.stop_exit for sent in market.sent] == [None]


def test_a_stop_that_controls_delay_is_waited_for() -> None:
    """Sent after the Limit it would find the position reserved for that."""
    market, child = Market(), replace(an_intent(spec=STOP), group_role="stop_loss")

    waits = run(market, limit(), refreshed=limit(stop_command=refused(intent=child)))

    assert isinstance(waits, RetryLater) and waits.code == "TRADING_HALTED" and waits.seconds > 0
    assert market.sent == []


def test_a_stop_that_nothing_refuses_goes_with_the_limit() -> None:
    market = Market()

    run(market, limit(), refreshed=limit(stop_command=command(spec=STOP)))

    assert [sent.stop_exit for sent in market.sent] == [StopExit(Decimal(90), Decimal(89))]


@pytest.mark.parametrize(
    ("quantity", "filled", "legs", "only_prices"),
    [(10, 0, (), True), (10, 4, (), False), (10, 0, None, False), (12, 0, (), False)],
    ids=["an exit of a pair", "of which some is filled", "an order that is alone", "of another quantity"],
)
def test_of_an_exit_of_a_pair_only_the_price_is_replaced(
    quantity: int, filled: int, legs: Any, only_prices: bool
) -> None:
    market = Market({"b1": replace(shown("b1", filled, legs=legs), quantity=Decimal(quantity))})
    known = (KnownOrder("name of b1", "b1", False, Decimal(0)),)

    run(market, command(type="REPLACE", broker_order_id="b1", orders=known))

    assert [change.only_prices for change in market.sent] == [only_prices]


def test_a_canceled_stop_is_settled_here_only_if_the_limit_is_not_on_its_way() -> None:
    canceled = stop(status=Status.PENDING_CANCEL)

    unsent = decide_locally(replace(canceled, pair=SENT._replace(is_settled=False, is_sent=False)))

    assert isinstance(unsent, Decided) and unsent.code == CANCELED_BEFORE_SENT
    assert decide_locally(canceled) is None
    assert decide_locally(replace(canceled, pair=SENT._replace(is_settled=False, is_started=True))) is None


def test_a_stop_that_may_be_at_the_broker_of_a_deleted_account_is_not_refused() -> None:
    assert isinstance(decide_locally(stop(broker=None)), Unknown)
