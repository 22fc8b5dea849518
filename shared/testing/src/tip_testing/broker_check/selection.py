"""Which facts are run where, and why the others are not."""

from collections.abc import Mapping

from tip_brokers import Capabilities
from tip_testing.broker_conformance.orders import BOUNDS, PROTOCOL

RESTING = frozenset({
    "test_the_stream_reports_what_becomes_of_an_order",
    "test_the_adapter_treats_client_ids_as_its_description_says",
    "test_the_symbols_that_it_trades_have_the_claimed_form",
    "test_every_claimed_kind_and_time_in_force_is_one_of_the_platform",
    "test_an_order_is_worked_as_its_kind_and_time_in_force_say",
    "test_a_trailing_stop_is_accepted_as_one",
    "test_a_fraction_is_sent_as_it_is",
    "test_an_order_for_extended_hours_is_shown_as_one",
    "test_a_direct_order_is_accepted",
    "test_an_order_is_found_by_both_of_its_ids",
    "test_what_was_never_sent_is_not_there",
    "test_the_same_client_order_id_never_makes_a_second_order",
    "test_prices_have_their_age_and_what_has_no_price_is_left_out",
    "test_a_cancel_ends_an_open_order",
    "test_a_replacement_is_a_new_order_under_its_own_id",
    "test_a_request_that_may_not_go_out_any_more_does_not",
    "test_every_key_pair_opens_an_account_that_has_a_name",
})  # fmt: skip
"""Facts that need nothing of a sandbox but that it takes an order which rests."""
SENDING_NOTHING = frozenset({
    "test_the_adapter_treats_client_ids_as_its_description_says",
    "test_the_symbols_that_it_trades_have_the_claimed_form",
    "test_every_claimed_kind_and_time_in_force_is_one_of_the_platform",
    "test_what_was_never_sent_is_not_there",
    "test_prices_have_their_age_and_what_has_no_price_is_left_out",
    "test_every_key_pair_opens_an_account_that_has_a_name",
})  # fmt: skip
"""Of these, facts that send no order at all."""
FILLING = frozenset({
    "test_an_order_by_its_notional_fills_for_that_much_money",
    "test_a_target_and_a_stop_for_one_position_both_rest",
    "test_two_exits_sent_as_one_order_both_rest_until_one_is_canceled",
    "test_an_exit_is_replaced_in_its_price_and_the_one_sent_with_it_stays",
    "test_fills_are_listed_each_under_one_id",
    "test_a_filled_order_shows_its_quantity_and_price",
    "test_positions_follow_fills",
    "test_a_cancel_of_an_ended_order_is_refused_or_changes_nothing",
    "test_a_replacement_of_an_ended_order_is_refused",
})  # fmt: skip
"""Facts that need a market order to fill."""
ONLY_SIMULATED: Mapping[str, str] = {
    "test_whatever_is_done_in_any_order_updates_and_listings_agree": "makes more calls than a sandbox takes",
    "test_prices_of_more_symbols_than_one_request_takes_are_read": "names symbols that a sandbox does not have",
    "test_a_direct_order_goes_where_the_account_says": "a sandbox does not show where an order went",
    "test_an_exit_that_is_filled_cancels_the_one_sent_with_it": "a sandbox lets nobody set a price",
    "test_a_trailing_stop_follows_the_price_and_sells_when_it_turns": "a sandbox lets nobody set a price",
    "test_the_trail_of_a_trailing_stop_is_replaced": "a sandbox lets nobody set a price",
    "test_unknown_keys_are_refused_as_such": "a wrong key may lock an account",
}
HOSTILE = "needs a hostile broker, which only a check at the simulator has"
FAULT = "needs a fault that only a simulator has"
NO_FILLS = "needs a market order to fill now: --fills"


def reason_to_skip_at_sandbox(fact: str, claim: str, kind: str | None, can: Capabilities, fills: bool) -> str | None:
    """A fact that is not listed above is not run at a sandbox."""
    if fact in FILLING or (fact in RESTING and _may_fill(fact, kind, can)):
        return None if fills else NO_FILLS
    if fact in RESTING:
        return None
    return ONLY_SIMULATED.get(fact, HOSTILE if claim == BOUNDS else FAULT)


def _may_fill(fact: str, kind: str | None, can: Capabilities) -> bool:
    """Without Limit orders, what should rest is a Market order."""
    return kind == "Market" or (kind is None and "Limit" not in can.kinds and fact not in SENDING_NOTHING)


ORDER = ("streams", "client_ids", "kinds", "replacement", "quotes", "executions", "fractions", "notional_orders",
         "extended_hours", "routing", "shared_exits", "exit_pairs", "symbols")  # fmt: skip
CLAIMS = (*ORDER, "calls_per_minute")
EVERY_ADAPTER = (PROTOCOL, BOUNDS)
