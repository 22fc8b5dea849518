"""The order life cycle: one table, and what is always true of it."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from intents.model import TERMINAL, Status, Update, follow
from intents.model.lifecycle import NEXT, diagram

STEPS = st.lists(st.tuples(st.sampled_from(Update), st.booleans()), max_size=30)
FILLS = {Update.PARTIALLY_FILLED, Update.FILLED}


@given(STEPS)
def test_what_has_ended_stays_ended_and_only_a_late_fill_still_counts(steps: list[tuple[Update, bool]]) -> None:
    status, filled = Status.PENDING, Decimal(0)
    for update, _ in steps:
        filled += update in FILLS
        after = follow(status, update, filled)
        if status in TERMINAL and after is not None:
            assert update in FILLS and after in (status, Status.FILLED)
        if status in TERMINAL:
            assert after is None or after in TERMINAL
        status = after or status
    assert status in Status


@given(st.sampled_from(Status), st.sampled_from(Update), st.booleans())
def test_a_working_intent_says_whether_anything_is_filled(status: Status, update: Update, filled: bool) -> None:
    after = follow(status, update, Decimal(int(filled)))

    assert not (after is Status.ACCEPTED and filled)
    if update not in FILLS and not filled:
        assert after is not Status.PARTIALLY_FILLED


def test_every_open_status_can_be_cancelled_and_reach_every_end_a_broker_may_report() -> None:
    for status in set(Status) - TERMINAL:
        assert follow(status, Update.CANCEL) in ({Status.PENDING_CANCEL} if status != Status.PENDING_CANCEL else {None})
        for update in (Update.FILLED, Update.CANCELED, Update.EXPIRED):
            assert follow(status, update) == Status(update)


def test_a_fill_overtakes_a_cancel() -> None:
    assert follow(Status.PENDING_CANCEL, Update.FILLED) is Status.FILLED
    assert follow(Status.CANCELED, Update.FILLED) is Status.FILLED


def test_every_status_can_be_reached_and_the_diagram_shows_every_line() -> None:
    reached, more = set(), {Status.PENDING}
    while more:
        reached |= more
        more = {after for (status, _), after in NEXT.items() if status in reached} - reached
    assert reached == set(Status)
    assert diagram().count("-->") == len(NEXT) + 1 + len(TERMINAL)
