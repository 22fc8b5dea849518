"""Facts about answers that no broker should give: each is a broken one, which says nothing about what was done."""

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest

from tip_brokers.protocol import Broker, ListingTooLong, OutcomeUnknown
from tip_testing.broker_conformance.hostile import BROKEN, Hostile, huge_when_decompressed, whole
from tip_testing.broker_conformance.market import SOON_SECONDS, Market, new_client_order_id
from tip_testing.broker_conformance.orders import BOUNDS, Orders, proves

_MOST_MEMORY = 48 * 2**20
_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
_LISTINGS: dict[str, Callable[[Broker], Any]] = {
    "open_orders": lambda broker: list(broker.open_orders()),
    "orders": lambda broker: list(broker.orders(_EPOCH)),
    "executions": lambda broker: list(broker.executions(_EPOCH)),
}


def ends(call: Callable[[], Any]) -> Exception | None:
    """What the call raised. It may run for ever: then the test fails, and the thread ends with the hostile broker."""
    raised: list[Exception | None] = []

    def run() -> None:
        try:
            call()
            raised.append(None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the fact is about it
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SOON_SECONDS)
    assert raised, f"the call has not ended within {SOON_SECONDS} s"
    return raised[0]


class BoundedAnswers(Orders):
    """Inherited by `Conformance`."""

    def at(self, market: Market, hostile: Hostile) -> Broker:
        if market.at is None:
            pytest.skip("this adapter does not speak HTTP")
        return market.at(hostile.address)

    def pages(self, market: Market, listing: str) -> Callable[[int], bytes]:
        if listing not in market.full_pages:
            pytest.skip("this adapter has no pages of it")
        return market.full_pages[listing]

    @proves(BOUNDS)
    @pytest.mark.parametrize("answer", list(BROKEN))
    def test_a_broken_answer_to_a_send_leaves_its_outcome_unknown(self, answer: str, market: Market) -> None:
        with Hostile(BROKEN[answer]) as hostile:
            raised = ends(lambda: self.at(market, hostile).create(self.resting(market)))

        assert isinstance(raised, OutcomeUnknown), repr(raised)
        assert hostile.requests == 1, "nothing is sent twice by itself"

    @proves(BOUNDS)
    @pytest.mark.parametrize("answer", list(BROKEN))
    def test_a_broken_answer_to_a_query_says_nothing(self, answer: str, market: Market) -> None:
        with Hostile(BROKEN[answer]) as hostile:
            raised = ends(lambda: self.at(market, hostile).find(new_client_order_id(), market.resting))

        assert isinstance(raised, OutcomeUnknown), repr(raised)

    @proves(BOUNDS)
    @pytest.mark.parametrize("answer", list(BROKEN))
    def test_a_broken_answer_about_prices_gives_none(self, answer: str, market: Market) -> None:
        if not market.can.quotes:
            pytest.skip("this broker claims no prices")
        with Hostile(BROKEN[answer]) as hostile:
            raised = ends(lambda: self.at(market, hostile).quotes([market.filling]))

        assert isinstance(raised, OutcomeUnknown), repr(raised)

    @proves(BOUNDS)
    def test_an_answer_that_grows_when_decompressed_is_not_kept(self, market: Market) -> None:
        with Hostile(huge_when_decompressed) as hostile:
            broker = self.at(market, hostile)
            tracemalloc.start()
            try:
                raised = ends(broker.balance)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()

        assert isinstance(raised, OutcomeUnknown) and peak < _MOST_MEMORY, peak

    @proves(BOUNDS)
    @pytest.mark.parametrize("listing", list(_LISTINGS))
    def test_a_listing_that_repeats_a_page_ends_as_broken(self, listing: str, market: Market) -> None:
        with Hostile(whole(self.pages(market, listing)(0))) as hostile:
            raised = ends(lambda: _LISTINGS[listing](self.at(market, hostile)))

        assert isinstance(raised, OutcomeUnknown), repr(raised)
        assert hostile.requests == 2, "a page that was seen before is followed no further"

    @proves(BOUNDS)
    @pytest.mark.parametrize("listing", list(_LISTINGS))
    def test_a_listing_whose_pages_never_end_is_too_long(self, listing: str, market: Market) -> None:
        page, numbers = self.pages(market, listing), count()

        def next_page() -> Iterator[bytes]:
            return whole(page(next(numbers)))()

        with Hostile(next_page) as hostile:
            raised = ends(lambda: _LISTINGS[listing](self.at(market, hostile)))

        assert isinstance(raised, ListingTooLong), repr(raised)
