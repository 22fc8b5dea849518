"""Idempotency-Key: the same key and body are done once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg2

from intents import schemas_submits
from tip_testing.commands import cancel, create, limit

from .conftest import Desk


def test_the_same_request_again_is_answered_as_the_first_was(desk: Desk) -> None:
    first = desk.submit(create(), Idempotency_Key="key 1")
    desk.execute("UPDATE intents.intent SET status = 'ACCEPTED', updated_at = now() WHERE account_id = :account_id")

    again = desk.submit(create(), Idempotency_Key="key 1")

    assert (again.status_code, again.json) == (201, first.json)
    assert again.headers["Idempotent-Replayed"] == "true" and "Idempotent-Replayed" not in first.headers
    assert again.headers["Location"] == first.headers["Location"]
    assert len(desk.rows("action")) == len(desk.outbox()) == 1


def test_the_key_with_another_body_is_refused(desk: Desk) -> None:
    desk.submit(create(quantity="1"), Idempotency_Key="k")

    answer = desk.submit(create(quantity="2"), Idempotency_Key="k")

    assert (answer.status_code, answer.json["code"]) == (422, "idempotency_key_reused")
    assert len(desk.rows("action")) == 1


def test_spacing_and_order_of_a_body_do_not_make_it_another(desk: Desk) -> None:
    first = desk.submit(create(quantity="1"), Idempotency_Key="k").json
    payload = '{"spec":{"Market":{"quantity":"1"}},"order_side":"BUY","symbol":"AAPL"}'
    other = f'{{ "command": {{"payload": {payload}, "type": "CREATE"}} }}'

    again = desk.client.post(
        desk.path, data=other, content_type="application/json", headers={**desk.headers, "Idempotency-Key": "k"}
    )

    assert again.json == first


def test_a_key_belongs_to_its_account(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    other = new_desk(organization=desk.organization)

    ids = {owner.submit(create(), Idempotency_Key="k").json["id"] for owner in (desk, other)}

    assert len(ids) == 2


def test_a_key_is_free_again_after_a_day(desk: Desk) -> None:
    desk.submit(create(quantity="1"), Idempotency_Key="k")
    desk.execute(
        "UPDATE intents.idempotency SET created_at = now() - interval '24 hours' WHERE account_id = :account_id"
    )

    answer = desk.submit(create(quantity="2"), Idempotency_Key="k")

    assert (answer.status_code, len(desk.rows("action"))) == (201, 2)
    assert len(desk.rows("idempotency")) == 1


def test_commands_on_an_intent_are_idempotent_too(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]

    answers = [desk.submit(cancel(intent_id), Idempotency_Key="c") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json == answers[1].json
    assert len(desk.rows("action")) == 2


def test_equal_requests_at_the_same_moment_make_one_action_and_equal_answers(desk: Desk) -> None:
    for round_ in range(5):
        barrier = threading.Barrier(8)

        def submit(_: int, key: str = f"race {round_}", barrier: threading.Barrier = barrier) -> tuple[int, str]:
            barrier.wait()
            answer = desk.submit(create(), Idempotency_Key=key)
            return answer.status_code, answer.get_data(as_text=True)

        with ThreadPoolExecutor(8) as pool:
            answers = set(pool.map(submit, range(8)))

        assert len(answers) == 1
        assert answers.pop()[0] == 201
        assert len(desk.rows("action")) == len(desk.outbox()) == round_ + 1


def test_while_the_first_request_is_in_flight_the_second_is_refused(desk: Desk) -> None:
    first = psycopg2.connect(desk.platform.admin_url)
    first.cursor().execute(
        "INSERT INTO intents.idempotency VALUES (%s, 'k', 'x', gen_random_uuid(), gen_random_uuid(), '{}', now())",
        (str(desk.account_id),),
    )

    answer = desk.submit(create(), Idempotency_Key="k")
    first.close()

    assert (answer.status_code, answer.json["code"]) == (409, "idempotent_request_in_flight")
    assert desk.rows("action") == desk.outbox() == []


def test_a_repeated_cancel_with_a_key_is_answered_the_same_also_when_the_intent_has_ended(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(cancel(intent_id))

    first = desk.submit(cancel(intent_id), Idempotency_Key="second")
    desk.execute("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :account_id")
    again = desk.submit(cancel(intent_id), Idempotency_Key="second")

    assert (first.status_code, again.status_code) == (200, 200)
    assert again.json == first.json
    assert again.headers["Idempotent-Replayed"] == "true"
    assert desk.submit(cancel(intent_id), Idempotency_Key="third").json["code"] == "intent_terminal"
    assert desk.submit(create(), Idempotency_Key="second").json["code"] == "idempotency_key_reused"


def test_a_create_whose_key_is_held_by_somebody_all_the_time_is_refused(desk: Desk) -> None:
    body = create()
    desk.execute(
        "INSERT INTO intents.idempotency (account_id, key, request_hash, intent_id, action_id, state, created_at) "
        "VALUES (:account_id, 'k', :request_hash, gen_random_uuid(), gen_random_uuid(), '{}', now())",
        request_hash=schemas_submits.request_hash(schemas_submits.command(body)),
    )

    answer = desk.submit(body, Idempotency_Key="k")

    assert (answer.status_code, answer.json["code"]) == (409, "idempotent_request_in_flight")
