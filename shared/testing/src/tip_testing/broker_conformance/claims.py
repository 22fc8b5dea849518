"""Facts about what a description claims: a capability that is claimed has to be kept."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from tip_brokers.capabilities import ALL_TIMES, DAY, FOK, IOC, PLATFORM_KINDS
from tip_brokers.protocol import OPEN, Broker, NewOrder, OrderStatus
from tip_testing.broker_conformance.exits import ExitPairs
from tip_testing.broker_conformance.market import Listener, Market, listen, new_client_order_id, symbols_of
from tip_testing.broker_conformance.orders import proves
from tip_testing.broker_conformance.reads import settle_seconds
from tip_testing.waiting import eventually

KINDS_AND_TIMES = [(kind, time) for kind in PLATFORM_KINDS for time in ALL_TIMES]
_UNFILLED = (OrderStatus.CANCELED, OrderStatus.EXPIRED)


class KeptClaims(ExitPairs):
    """Inherited by `Conformance`."""

    @proves("streams")
    def test_the_stream_reports_what_becomes_of_an_order(self, market: Market, broker: Broker) -> None:
        if not market.can.streams:
            pytest.skip("this broker claims no stream")
        listener = listen(market)
        made = broker.create(self.resting(market))
        broker.cancel(made.broker_order_id)

        def statuses() -> list[OrderStatus]:
            return [update.order.status for update in listener.of(made)]

        eventually(lambda: OrderStatus.CANCELED in statuses(), settle_seconds(broker))
        listener.close()

    @proves("client_ids")
    def test_the_adapter_treats_client_ids_as_its_description_says(self, market: Market, broker: Broker) -> None:
        assert broker.client_ids is market.can.client_ids

    @proves("symbols")
    def test_the_symbols_that_it_trades_have_the_claimed_form(self, market: Market) -> None:
        form = market.can.symbols.pattern
        strange = [symbol for symbol in symbols_of(market) if not re.fullmatch(form, symbol)]

        assert not strange, f"the platform would refuse {', '.join(strange)}: it has not the form {form}"

    @proves("kinds")
    def test_every_claimed_kind_and_time_in_force_is_one_of_the_platform(self, market: Market) -> None:
        claimed = {(kind, time) for kind, times in market.can.kinds.items() for time in times}

        assert claimed and claimed <= set(KINDS_AND_TIMES)

    @proves("kinds")
    @pytest.mark.parametrize(("kind", "time_in_force"), KINDS_AND_TIMES)
    def test_an_order_is_worked_as_its_kind_and_time_in_force_say(
        self, kind: str, time_in_force: str, market: Market, broker: Broker
    ) -> None:
        """Where a Market order fills at once: one of another kind that fills there was not sent as what it is."""
        if time_in_force not in market.can.kinds.get(kind, ()):
            pytest.skip(f"this broker claims no {kind} {time_in_force}")
        made = broker.create(self.of_kind(market, market.filling, kind, time_in_force))

        if kind == "Market":
            assert self.ended(broker, made, OrderStatus.FILLED)
        elif time_in_force in (IOC, FOK):
            assert self.ended(broker, made, *_UNFILLED).filled_quantity == 0
        else:
            shown = self.shown(broker, made)
            assert shown.status in OPEN and shown.filled_quantity == 0, f"{kind} {time_in_force} is {shown.status}"

    @proves("fractions")
    def test_a_fraction_is_sent_as_it_is(self, market: Market, broker: Broker) -> None:
        if not market.can.fractions:
            pytest.skip("this broker claims no fractional quantities")
        wanted = self.resting(market, "2.5")
        if DAY in market.can.kinds[wanted.kind]:  # some brokers take fractions for the day alone
            wanted = replace(wanted, time_in_force=DAY)

        shown = self.shown(broker, broker.create(wanted))

        assert shown.quantity == wanted.quantity

    @proves("extended_hours")
    def test_an_order_for_extended_hours_is_shown_as_one(self, market: Market, broker: Broker) -> None:
        """Of every kind and time in force that is claimed."""
        if not market.can.extended_hours:
            pytest.skip("this broker claims no extended hours")
        for kind, times in market.can.extended_hours.items():
            for time in times:
                wanted = self.of_kind(market, market.resting, kind, time)
                self.is_for_extended_hours(broker, replace(wanted, extended_hours=True))
                self.is_for_extended_hours(broker, replace(wanted, client_order_id=new_client_order_id()))

    def is_for_extended_hours(self, broker: Broker, wanted: NewOrder) -> None:
        shown = self.shown(broker, broker.create(wanted))
        assert shown.extended_hours == wanted.extended_hours, f"{wanted.kind} {wanted.time_in_force} is shown otherwise"

    @proves("routing")
    def test_a_direct_order_is_accepted(self, market: Market, broker: Broker) -> None:
        assert self.shown(broker, broker.create(self.direct(market))).status in OPEN

    @proves("routing")
    def test_a_direct_order_goes_where_the_account_says(self, market: Market, broker: Broker) -> None:
        sent = self.direct(market)
        broker.create(sent)

        went = self.went_direct(market, sent)
        if went is None:
            pytest.skip("the broker does not show where an order went")
        assert went, "it was sent without the account's destination"

    def direct(self, market: Market) -> NewOrder:
        if not market.can.routing:
            pytest.skip("this broker claims no routing")
        return replace(self.resting(market), route_strategy="DIRECT")

    @proves("executions")
    def test_fills_are_listed_each_under_one_id(self, market: Market, broker: Broker, listener: Listener) -> None:
        if not market.can.executions:
            pytest.skip("this broker claims no list of fills")
        before = datetime.now(UTC) - timedelta(minutes=1)
        wanted = self.filling(market)
        made = broker.create(wanted)
        self.ended(broker, made, OrderStatus.FILLED)

        def listed() -> dict[str, Decimal]:
            fills = [fill for fill in broker.executions(before) if fill.broker_order_id == made.broker_order_id]
            return {fill.id: fill.quantity for fill in fills}

        eventually(lambda: sum(listed().values()) == wanted.quantity, settle_seconds(broker))
        if market.can.streams:
            eventually(lambda: listener.filled(made) == wanted.quantity, settle_seconds(broker))
            streamed = {update.execution.id for update in listener.of(made) if update.execution}
            assert listed().keys() == streamed, "an execution has one id, wherever it is shown"
