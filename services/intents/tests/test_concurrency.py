"""Many at once: one order of events, no gap, no lost change."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tip_testing.commands import cancel, create, limit, replace

from .broker_side import accept, fill
from .conftest import Desk
from .test_controls import limits

WRITERS = 64


def test_64_writers_on_one_account_give_one_sequence_without_gaps_and_a_chain_that_holds(desk: Desk) -> None:
    def write(place: int) -> list[int]:
        return [desk.submit(create(symbol=f"S{place}")).json["sequence"] for _ in range(5)]

    with ThreadPoolExecutor(WRITERS) as pool:
        answered = [sequence for sequences in pool.map(write, range(WRITERS)) for sequence in sequences]

    assert sorted(answered) == list(range(1, WRITERS * 5 + 1))
    assert [row["sequence"] for row in pages(desk)] == sorted(answered)
    assert desk.get("/verify").json["valid"] is True
    assert len(desk.outbox()) == len(answered)


def pages(desk: Desk) -> list[Any]:
    found, cursor = [], ""
    while cursor is not None:
        page = desk.get(f"?limit=100{cursor and f'&next_cursor={cursor}'}").json
        found += page["data"]
        cursor = page["next_cursor"]
    return found


def test_a_reader_never_sees_a_sequence_before_the_one_before_it(desk: Desk) -> None:
    def write(_: int) -> None:
        for _ in range(10):
            desk.created(create())

    with ThreadPoolExecutor(8) as pool:
        writing = [pool.submit(write, place) for place in range(8)]
        while not all(writer.done() for writer in writing):
            seen = [row["sequence"] for row in desk.rows("action")]
            assert sorted(seen) == list(range(1, len(seen) + 1))
        for writer in writing:
            writer.result()

    assert len(desk.rows("action")) == 80


def test_cancel_racing_fill_and_replace_ends_in_one_consistent_story(desk: Desk) -> None:
    for round_ in range(12):
        action = desk.created(limit(quantity="10"))
        intent_id = action["intent_id"]
        order = accept(desk, intent_id, f"b{round_}")
        with ThreadPoolExecutor(4) as pool:
            cancelled = pool.submit(desk.submit, cancel(intent_id))
            replaced = pool.submit(desk.submit, replace(intent_id))
            filled = pool.submit(fill, desk, order, "10", "99", f"x{round_}")
            again = pool.submit(fill, desk, order, "10", "99", f"x{round_}")
            statuses = {cancelled.result().status_code, replaced.result().status_code}
            fills = [filled.result(), again.result()]

        assert statuses <= {201, 409}
        assert fills.count({}) == 1  # the same execution counts once
        state = desk.get(f"/{intent_id}").json["state"]
        assert (state["status"], state["filled_quantity"], state["leaves_quantity"]) == ("FILLED", "10", "0")
    log = desk.execute(
        "SELECT sequence FROM intents_api.event_log WHERE account_id = :account_id ORDER BY sequence"
    ).scalars()
    sequences = list(log)
    assert sequences == list(range(1, len(sequences) + 1))
    assert desk.get("/verify").json["valid"] is True
    changes = desk.execute(
        "SELECT from_status, to_status, intent_id FROM intents.action WHERE account_id = :account_id UNION ALL "
        "SELECT from_status, to_status, intent_id FROM intents.account_event "
        "WHERE account_id = :account_id AND to_status IS NOT NULL"
    ).all()
    begun, ended = [row[0] for row in changes if row[0]], [row[1] for row in changes]
    assert sorted([*begun, *["FILLED"] * 12]) == sorted(ended)  # every change starts where another one ended


def test_of_many_replacements_at_once_one_is_taken(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: desk.submit(replace(intent_id)).status_code, range(8)))

    assert sorted(answers) == [201] + [409] * 7
    assert len(desk.rows("action")) == 2


def test_of_many_cancels_at_once_one_is_written_and_all_are_answered_with_it(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: desk.submit(cancel(intent_id)), range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] * 7 + [201]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert len(desk.rows("action")) == 2


def test_a_limit_on_the_number_of_orders_holds_exactly_under_concurrency(desk: Desk) -> None:
    limits(desk, max_orders_per_minute=10)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: desk.submit(create()).status_code, range(32)))

    assert sorted(answers) == [201] * 10 + [422] * 22
