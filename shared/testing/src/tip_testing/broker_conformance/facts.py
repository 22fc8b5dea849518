"""Plain facts about every broker."""

from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tip_brokers.capabilities import Replacement
from tip_brokers.client_ids import ClientIds
from tip_brokers.protocol import (
    OPEN,
    Broker,
    CredentialRefused,
    NewOrder,
    NotWritten,
    OrderStatus,
    OutcomeUnknown,
    Refused,
)
from tip_testing.broker_conformance.bounds import BoundedAnswers
from tip_testing.broker_conformance.claims import KeptClaims
from tip_testing.broker_conformance.machine import machine
from tip_testing.broker_conformance.market import Listener, Market, listen, new_client_order_id
from tip_testing.broker_conformance.orders import proves
from tip_testing.broker_conformance.reads import settle_seconds
from tip_testing.waiting import eventually

_ZERO = Decimal(0)


class Conformance(KeptClaims, BoundedAnswers):
    """Plain facts. Inherit it and give it a `market`."""

    @pytest.fixture
    def broker(self, market: Market) -> Broker:
        return market.broker

    @pytest.fixture
    def listener(self, market: Market) -> Any:
        made = listen(market)
        yield made
        made.close()

    def needs_replacement(self, market: Market) -> None:
        if market.can.replacement is Replacement.NONE:
            pytest.skip("this broker claims no replacement")

    def needs_client_ids(self, market: Market) -> None:
        if market.can.client_ids is ClientIds.NONE:
            pytest.skip("this broker claims no client ids")

    def was_not_made(self, market: Market, order: NewOrder) -> None:
        """As far as the broker can be queried."""
        assert order.client_order_id not in {shown.client_order_id for shown in market.broker.open_orders()}
        if market.can.client_ids is not ClientIds.NONE:
            assert market.broker.find(order.client_order_id, order.symbol) is None

    @proves("client_ids")
    def test_an_order_is_found_by_both_of_its_ids(self, market: Market, broker: Broker) -> None:
        self.needs_client_ids(market)
        made = broker.create(self.resting(market))

        by_ours, by_theirs = broker.find(made.client_order_id, made.symbol), broker.order(made.broker_order_id)
        assert by_ours and by_theirs
        assert by_ours.broker_order_id == made.broker_order_id == by_theirs.broker_order_id
        assert made.client_order_id in {shown.client_order_id for shown in broker.open_orders()}

    @proves("client_ids")
    def test_what_was_never_sent_is_not_there(self, market: Market, broker: Broker) -> None:
        self.needs_client_ids(market)
        assert broker.find(new_client_order_id(), market.resting) is None
        assert broker.order(str(uuid4())) is None

    @proves("client_ids")
    def test_the_same_client_order_id_never_makes_a_second_order(self, market: Market, broker: Broker) -> None:
        wanted = self.resting(market)
        made = broker.create(wanted)
        if market.can.client_ids is ClientIds.UNIQUE:
            with pytest.raises(Refused):
                broker.create(wanted)
        elif market.can.client_ids is ClientIds.HEADER:
            assert broker.create(wanted).broker_order_id == made.broker_order_id
        else:
            pytest.skip("this broker does not promise it")
        same = [shown for shown in broker.open_orders() if shown.client_order_id == wanted.client_order_id]
        assert [shown.broker_order_id for shown in same] == [made.broker_order_id]

    def test_a_filled_order_shows_its_quantity_and_price(
        self, market: Market, broker: Broker, listener: Listener
    ) -> None:
        wanted = self.filling(market)
        made = broker.create(wanted)

        filled = self.ended(broker, made, OrderStatus.FILLED)

        assert filled.filled_quantity == wanted.quantity
        assert filled.average_price is not None and filled.average_price > 0
        eventually(lambda: listener.filled(made) == wanted.quantity)

    def test_positions_follow_fills(self, market: Market, broker: Broker) -> None:
        before = self.held(market)
        wanted = self.filling(market)

        self.ended(broker, broker.create(wanted), OrderStatus.FILLED)

        eventually(lambda: self.held(market) - before == wanted.quantity, settle_seconds(broker))
        assert broker.balance().currency

    @proves("quotes")
    def test_prices_have_their_age_and_what_has_no_price_is_left_out(self, market: Market, broker: Broker) -> None:
        if not market.can.quotes:
            pytest.skip("this broker claims no prices")
        found = broker.quotes([market.filling, "NO SUCH SYMBOL"])

        assert [quote.symbol for quote in found] == [market.filling]
        [quote] = found
        assert quote.quoted_at or quote.traded_at, "a price is of a moment"
        assert quote.bid is None or quote.ask is None or quote.bid <= quote.ask
        assert all(price is None or price > 0 for price in (quote.bid, quote.ask, quote.last))
        assert broker.quotes([]) == []

    @proves("quotes")
    def test_prices_of_more_symbols_than_one_request_takes_are_read(self, market: Market, broker: Broker) -> None:
        if not market.can.quotes:
            pytest.skip("this broker claims no prices")
        symbols = [market.filling, *(f"CONFORM{number}" for number in range(120))]

        assert market.filling in {quote.symbol for quote in broker.quotes(symbols)}

    def test_a_partial_fill_leaves_the_order_open(self, market: Market, broker: Broker, listener: Listener) -> None:
        if market.halving is None:
            pytest.skip("this broker has no symbol for it")
        made = broker.create(self.marketable(market, market.halving))

        eventually(lambda: listener.filled(made) == 5)
        shown = broker.order(made.broker_order_id)
        assert shown and shown.filled_quantity == 5 and shown.status in OPEN

    def test_a_cancel_ends_an_open_order(self, market: Market, broker: Broker, listener: Listener) -> None:
        made = broker.create(self.resting(market))

        broker.cancel(made.broker_order_id)

        assert self.ended(broker, made, OrderStatus.CANCELED).filled_quantity == 0
        eventually(lambda: "CANCELED" in [update.order.status for update in listener.of(made)])

    def test_a_cancel_of_an_ended_order_is_refused_or_changes_nothing(self, market: Market, broker: Broker) -> None:
        made = broker.create(self.filling(market))
        self.ended(broker, made, OrderStatus.FILLED)

        with suppress(Refused):
            broker.cancel(made.broker_order_id)
        assert self.ended(broker, made, OrderStatus.FILLED)

    @proves("replacement")
    def test_a_replacement_is_a_new_order_under_its_own_id(self, market: Market, broker: Broker) -> None:
        self.needs_replacement(market)
        old = broker.create(self.resting(market))
        change = self.change(market, old.kind)

        new = broker.replace(old.broker_order_id, change)

        assert new.client_order_id == change.client_order_id and new.replaces == old.broker_order_id
        ended = self.ended(broker, old, OrderStatus.REPLACED)
        assert ended.replaced_by == new.broker_order_id
        shown = self.ended(broker, new, OrderStatus.WORKING)
        assert shown.quantity == change.quantity

    @proves("replacement")
    def test_the_filled_quantity_of_a_replacement_starts_anew(
        self, market: Market, broker: Broker, listener: Listener
    ) -> None:
        self.needs_replacement(market)
        if market.halving is None or "Limit" not in market.can.kinds:
            pytest.skip("this broker has no symbol for it, or no Limit orders")
        old = broker.create(self.of_kind(market, market.halving, "Limit", quantity="10"))
        eventually(lambda: listener.filled(old) == 5)

        new = broker.replace(old.broker_order_id, self.change(market, "Limit", "4"))

        assert new.quantity == 4
        replaced = self.ended(broker, old, OrderStatus.REPLACED)
        assert replaced.filled_quantity == 5

    def test_a_request_that_may_not_go_out_any_more_does_not(self, market: Market, broker: Broker) -> None:
        wanted = self.resting(market)

        def stop() -> None:
            raise NotWritten

        with pytest.raises(NotWritten):
            broker.create(wanted, stop)
        self.was_not_made(market, wanted)

        made = broker.create(wanted)
        with pytest.raises(NotWritten):
            broker.cancel(made.broker_order_id, stop)
        shown = broker.order(made.broker_order_id)
        assert shown and shown.status in OPEN

    def test_every_key_pair_opens_an_account_that_has_a_name(self, broker: Broker) -> None:
        assert broker.account_id() and broker.account_id() == broker.account_id()

    @proves("replacement")
    def test_a_replacement_of_an_ended_order_is_refused(self, market: Market, broker: Broker) -> None:
        self.needs_replacement(market)
        made = broker.create(self.filling(market))
        self.ended(broker, made, OrderStatus.FILLED)

        with pytest.raises(Refused):
            broker.replace(made.broker_order_id, self.change(market, made.kind))

    def test_a_refused_order_leaves_nothing_behind(self, market: Market, broker: Broker) -> None:
        if market.refusing is None:
            pytest.skip("this broker has no symbol for it")
        wanted = self.marketable(market, market.refusing)

        with pytest.raises(Refused) as refusal:
            broker.create(wanted)

        assert refusal.value.code
        self.was_not_made(market, wanted)

    @proves("client_ids")
    def test_an_order_whose_answer_never_came_is_found_by_its_id(self, market: Market, broker: Broker) -> None:
        self.needs_client_ids(market)
        if market.silent is None:
            pytest.skip("this broker has no symbol for it")
        wanted = self.marketable(market, market.silent)

        with pytest.raises(OutcomeUnknown):
            broker.create(wanted)

        assert broker.find(wanted.client_order_id, wanted.symbol)

    def test_updates_sent_twice_are_one_execution(self, market: Market, broker: Broker, listener: Listener) -> None:
        if market.doubling is None or not market.can.streams:
            pytest.skip("this broker has no symbol for it, or no stream")
        made = broker.create(self.marketable(market, market.doubling))
        self.ended(broker, made, OrderStatus.FILLED)

        eventually(lambda: len([update for update in listener.of(made) if update.execution]) >= 2)
        assert listener.filled(made) == 10

    def test_a_fill_after_a_cancel_is_reported(self, market: Market, broker: Broker, listener: Listener) -> None:
        if market.late is None:
            pytest.skip("this broker has no symbol for it")
        made = broker.create(self.marketable(market, market.late))
        broker.cancel(made.broker_order_id)

        self.ended(broker, made, OrderStatus.FILLED)
        eventually(lambda: listener.filled(made) == 10)

    def test_unknown_keys_are_refused_as_such(self, market: Market) -> None:
        if market.stranger is None:
            pytest.skip("this broker knows everybody")
        with pytest.raises(CredentialRefused):
            market.stranger.balance()
        with pytest.raises(CredentialRefused):
            market.stranger.create(self.resting(market))

    def test_whatever_is_done_in_any_order_updates_and_listings_agree(self, market: Market) -> None:
        self.needs_client_ids(market)
        run_state_machine_as_test(
            machine(market),
            settings=settings(
                max_examples=5,
                stateful_step_count=10,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                derandomize=True,
                database=None,
            ),
        )
