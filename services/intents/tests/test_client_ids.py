"""What the caller calls an order: a client_id that is unique per account for ever, and up to ten tags."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from intents import usecases
from intents.store import statistics
from tip_testing.commands import Body, cancel, create, replace
from tip_testing.waiting import eventually

from .conftest import Desk
from .filling import waiters
from .serving import send_at_once
from .test_batch import submit as submit_batch
from .test_coalesced import request


def labelled(body: Body | None = None, **labels: Any) -> Body:
    command = (body or create())["command"]
    return {"command": {**command, "payload": {**command["payload"], **labels}}}


def named(client_id: str) -> Body:
    return labelled(client_id=client_id)


def test_client_id_and_tags_are_in_the_hashed_record(desk: Desk) -> None:
    action = desk.created(labelled(client_id="my order ~ 1", tags=["momentum", "b 2"]))

    assert action["command"]["payload"]["client_id"] == "my order ~ 1"
    assert action["command"]["payload"]["tags"] == ["momentum", "b 2"]
    assert desk.get("/verify").json["valid"] is True
    [row] = desk.rows("intent")
    assert (row["client_id"], row["tags"]) == ("my order ~ 1", ["momentum", "b 2"])
    assert sorted(row["tag"] for row in desk.rows("intent_tag")) == ["b 2", "momentum"]


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_a_client_id_that_is_taken_names_its_intent(desk: Desk, query: str) -> None:
    first = desk.created(named("one"))

    again = desk.submit(named("one"), query=query)

    assert (again.status_code, again.json["code"]) == (409, "client_id_taken")
    assert again.json["intent_id"] == first["intent_id"]
    assert len(desk.rows("action")) == len(desk.rows("intent")) == len(desk.outbox()) == 1


def test_a_client_id_belongs_to_its_account_and_is_never_free_again(desk: Desk, new_desk: Callable[..., Desk]) -> None:
    other = new_desk(organization=desk.organization)
    taken = desk.created(named("one"))
    other.created(named("one"))
    desk.execute("UPDATE intents.intent SET status = 'CANCELED' WHERE account_id = :account_id")

    assert desk.submit(named("one")).json["intent_id"] == taken["intent_id"]


def test_an_idempotent_repetition_is_answered_and_not_refused(desk: Desk) -> None:
    first = desk.submit(named("one"), Idempotency_Key="k")

    again = desk.submit(named("one"), Idempotency_Key="k")

    assert (again.status_code, again.json) == (201, first.json)


@pytest.mark.parametrize(
    ("labels", "pointer", "code"),
    [
        ({"client_id": ""}, "client_id", "length"),
        ({"client_id": "x" * 65}, "client_id", "length"),
        ({"client_id": "caf\u00e9"}, "client_id", "pattern"),
        ({"client_id": "a\tb"}, "client_id", "characters"),
        ({"client_id": None}, "client_id", "null"),
        ({"client_id": 7}, "client_id", "type"),
        ({"tags": "a"}, "tags", "length"),
        ({"tags": [str(number) for number in range(11)]}, "tags", "length"),
        ({"tags": ["a", "a"]}, "tags", "repeated"),
        ({"tags": ["a", "x" * 33]}, "tags/1", "length"),
        ({"tags": [["a"]]}, "tags/0", "type"),
    ],
)
def test_labels_that_are_none_are_refused(desk: Desk, labels: dict[str, Any], pointer: str, code: str) -> None:
    answer = desk.submit(labelled(**labels))

    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json["errors"]] == [
        (f"/command/payload/{pointer}", code)
    ]


def test_only_a_create_has_labels(desk: Desk) -> None:
    intent_id = desk.created(create())["intent_id"]

    for body in (cancel(intent_id), replace(intent_id, Market={"quantity": "20"})):
        assert desk.submit(labelled(body, client_id="one")).status_code == 422


@pytest.mark.parametrize("atomic", [False, True])
def test_the_second_of_a_batch_with_one_client_id_is_refused(desk: Desk, atomic: bool) -> None:
    answer = submit_batch(desk, named("one"), create(), named("one"), atomic=atomic)

    results = answer.json["results"]
    assert [result["status"] for result in results] == ([424, 424, 409] if atomic else [201, 201, 409])
    assert results[2]["problem"]["code"] == "client_id_taken"
    assert len(desk.rows("action")) == (0 if atomic else 2)


def written_meanwhile(desk: Desk, monkeypatch: pytest.MonkeyPatch, client_id: str) -> None:
    """Between the read of the facts and the write another intent takes the client_id; no submit has seen it coming."""
    connections = desk.app.extensions["deps"].connections
    execute, done = connections._execute, []

    def overtaken(statement: Any, *arguments: Any) -> Any:
        if statement.name == "intents_create" and not done:
            done.append(1)
            desk.execute(
                "INSERT INTO intents.intent (account_id, id, organization_id, environment, symbol, order_side, "
                "route_strategy, spec, quantity, status, created_at, updated_at, next_attempt_at, client_id) "
                "VALUES (:account_id, gen_random_uuid(), :organization_id, 'paper', 'AAPL', 'BUY', 'AUTO', "
                """CAST('{"Market": {"quantity": "1"}}' AS json), 1, 'FILLED', now(), now(), now(), :client_id)""",
                organization_id=desk.organization.id,
                client_id=client_id,
            )
        return execute(statement, *arguments)

    monkeypatch.setattr(connections, "_execute", overtaken)


def test_whoever_loses_the_race_for_a_client_id_harms_no_other_of_the_batch(
    desk: Desk, new_desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    others = [new_desk() for _ in range(3)]
    written_meanwhile(desk, monkeypatch, "one")
    bodies = [request(desk, named("one"), Idempotency_Key="k"), *(request(other, named("one")) for other in others)]

    answers = send_at_once(desk.app, bodies)

    assert [answer.status_code for answer in answers] == [409, 201, 201, 201]
    assert statements.count("intents_create") == 2  # one for all, and one more for whoever lost
    assert desk.rows("action") == desk.rows("account_head") == desk.outbox() == []

    again = desk.submit(named("one"), Idempotency_Key="k")
    assert (again.status_code, again.json["code"]) == (409, "client_id_taken")
    assert again.json["intent_id"] == answers[0].json["intent_id"] == str(desk.rows("intent")[0]["id"])


def test_two_processes_that_race_for_a_client_id_neither_deadlock_nor_both_win(desk: Desk) -> None:
    """One holds the account's head and has not yet come to the client_id; the other waits for the head."""
    desk.created(create())
    holder = psycopg2.connect(desk.platform.admin_url)
    holder.cursor().execute(
        "SELECT 1 FROM intents.account_head WHERE account_id = %s FOR UPDATE", (str(desk.account_id),)
    )
    with ThreadPoolExecutor(2) as pool, desk.platform.admin() as connection:
        waiting = [pool.submit(desk.submit, named("one")), pool.submit(submit_batch, desk, named("one"), atomic=True)]
        eventually(lambda: waiters(connection) == 2)
        holder.rollback()
        single, batch = (answer.result() for answer in waiting)
    holder.close()

    assert sorted([single.status_code, batch.json["results"][0]["status"]]) == [201, 409]
    assert len(desk.rows("action")) == 2


COMMANDS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, "a", "b", "c"])), min_size=1, max_size=12)


def test_of_two_orders_of_a_batch_with_one_client_id_the_first_is_written(desk: Desk) -> None:
    results = submit_batch(desk, create(), named("mine"), create(), named("mine"), named("yours")).json["results"]

    assert [result["status"] for result in results] == [201, 201, 201, 409, 201]
    assert results[3]["problem"]["code"] == "client_id_taken"
    assert desk.get("/verify").json["valid"] is True


@settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(rounds=st.lists(COMMANDS, min_size=1, max_size=3))
def test_of_any_submits_at_once_one_has_each_client_id(
    new_desk: Callable[..., Desk], rounds: list[list[tuple[int, str | None]]]
) -> None:
    desks = [new_desk() for _ in range(3)]
    holders: dict[tuple[int, str], str] = {}
    accepted = 0
    for commands in rounds:
        bodies = [(place, client_id, named(client_id) if client_id else create()) for place, client_id in commands]
        answers = send_at_once(desks[0].app, [request(desks[place], body) for place, _, body in bodies])
        won = [(place, client_id, answer) for (place, client_id, _), answer in zip(bodies, answers, strict=True)]
        for place, client_id, answer in won:
            if answer.status_code == 201 and client_id:
                assert (place, client_id) not in holders
                holders[place, client_id] = answer.json["intent_id"]
        for place, client_id, answer in won:
            accepted += answer.status_code == 201
            if answer.status_code != 201:
                assert client_id and answer.json["code"] == "client_id_taken"
                assert answer.json["intent_id"] == holders[place, client_id]
    assert sum(len(desk.rows("intent")) for desk in desks) == accepted
    assert sum(len(desk.rows("action")) for desk in desks) == accepted


def test_statistics_count_the_intents_of_each_tag(desk: Desk) -> None:
    desk.created(labelled(tags=["a", "b"]))
    intent_id = desk.created(labelled(tags=["b"]))["intent_id"]
    desk.created(cancel(intent_id))
    expected = [{"tag": "b", "total_intents": 2}, {"tag": "a", "total_intents": 1}]

    assert desk.get("/stats").json["by_tag"] == expected
    usecases.run_maintenance(desk.deps)
    assert desk.get("/stats").json["by_tag"] == expected


def test_a_bucket_counts_a_hundred_tags_and_no_more(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "MOST_TAGS", 3)
    for tag in ("always", "t0", "t1", "t2", "t3", "always"):
        desk.created(labelled(tags=[tag]))
        usecases.run_maintenance(desk.deps)

    days = [row for row in desk.rows("statistic") if (row["width"], row["kind"]) == ("day", "tag")]
    assert {row["key"]: row["amount"] for row in days} == {"always": 2, "t0": 1, "t1": 1}


def test_the_stream_shows_client_id_and_tags(desk: Desk) -> None:
    desk.created(labelled(client_id="one", tags=["a", "b"]))
    statement = text("SELECT payload FROM intents_api.event_log WHERE account_id = :account_id")
    payload = desk.admin.execute(statement, {"account_id": desk.account_id}).scalar_one()

    assert (payload["client_id"], payload["tags"]) == ("one", ["a", "b"])
