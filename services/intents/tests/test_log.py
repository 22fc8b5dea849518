"""The action log: append-only, chained, and one with the account events."""

import json
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intents import store
from intents.model import Update, chain
from tip_testing.commands import cancel, create, limit

from .broker_side import accept, fill, report
from .conftest import Desk

CHANGES = [
    "UPDATE intents.{table} SET type = type",
    "UPDATE intents.{table} SET created_at = now() WHERE false",
    "DELETE FROM intents.{table}",
    "DELETE FROM intents.{table} WHERE false",
    "TRUNCATE intents.{table}",
]


@pytest.mark.parametrize("table", ["action", "account_event"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("role", ["intents", "superuser"])
def test_the_database_lets_nobody_change_the_log(desk: Desk, table: str, change: str, role: str) -> None:
    desk.created(create())
    url = desk.platform.admin_url if role == "superuser" else desk.platform.database_url("intents")
    connection = psycopg2.connect(url)

    with pytest.raises(psycopg2.errors.InsufficientPrivilege) as refused:
        connection.cursor().execute(change.format(table=table))

    connection.close()
    wall = "is append-only" if role == "superuser" else "permission denied"
    assert wall in str(refused.value)


@pytest.mark.parametrize("sequence", [0, -1])
@pytest.mark.parametrize(
    ("role", "table"), [("intents", "action"), ("intents_web", "action"), ("intents", "account_event")]
)
def test_nothing_is_written_before_the_place_where_verification_begins(
    desk: Desk, role: str, table: str, sequence: int
) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    connection = psycopg2.connect(desk.platform.database_url(role))
    cursor = connection.cursor()
    cursor.execute(f"SET tip.organizations = '{{{desk.organization.id}}}'")

    with pytest.raises(psycopg2.errors.CheckViolation, match=f"{table}_sequence_check"):
        cursor.execute(
            f"INSERT INTO intents.{table} "
            f"SELECT (jsonb_populate_record(line, jsonb_build_object('sequence', {sequence}))).* "
            f"FROM intents.{table} line WHERE account_id = '{desk.account_id}' LIMIT 1"
        )

    connection.close()


def test_the_chain_holds_over_every_kind_of_command(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(cancel(intent_id))
    desk.created(create())

    records = desk.get().json["data"]

    assert records[0]["previous_hash"] == "00" * 32
    assert [one["previous_hash"] for one in records[1:]] == [one["hash"] for one in records[:-1]]
    assert desk.get("/verify").json == {
        "log_epoch": str(store.epochs(desk.admin)[-1].epoch),
        "account_id": str(desk.account_id),
        "valid": True,
        "checked": 3,
        "last_sequence": 3,
        "signed_sequence": None,
        "first_broken": None,
        "next_cursor": None,
    }


def test_an_account_without_actions_is_valid(desk: Desk) -> None:
    assert desk.get("/verify").json["valid"] is True


TAMPERING: dict[str, tuple[str, int, str]] = {
    "a changed quantity": (
        'UPDATE intents.action SET spec = \'{"Market": {"quantity": "1000", "time_in_force": "DAY"}}\' '
        "WHERE account_id = :account_id AND sequence = 2",
        2,
        "altered",
    ),
    "another actor": (
        "UPDATE intents.action SET actor_id = 'x' WHERE account_id = :account_id AND sequence = 3",
        3,
        "altered",
    ),
    "another moment": (
        "UPDATE intents.action SET created_at = created_at + interval '1 microsecond' "
        "WHERE account_id = :account_id AND sequence = 1",
        1,
        "altered",
    ),
    "a missing action": (
        "DELETE FROM intents.action WHERE account_id = :account_id AND sequence = 2",
        3,
        "previous_action_missing_or_altered",
    ),
    "a missing beginning": (
        "DELETE FROM intents.action WHERE account_id = :account_id AND sequence = 1",
        2,
        "previous_action_missing_or_altered",
    ),
    "a missing end": (
        "DELETE FROM intents.action WHERE account_id = :account_id AND sequence >= 4",
        4,
        "last_actions_missing",
    ),
    "a moved sequence": (
        "UPDATE intents.action SET sequence = 9 WHERE account_id = :account_id AND sequence = 4",
        9,
        "altered",
    ),
    "a hash made to fit": (
        "UPDATE intents.action SET symbol = 'X', hash = sha256('x') WHERE account_id = :account_id AND sequence = 2",
        2,
        "altered",
    ),
}


@pytest.mark.parametrize("tampering", TAMPERING)
def test_tampering_is_found_and_its_first_link_named(desk: Desk, tampering: str) -> None:
    for _ in range(4):
        desk.created(create())
    change, sequence, reason = TAMPERING[tampering]
    desk.execute("ALTER TABLE intents.action DISABLE TRIGGER ALL")
    desk.execute(change)
    desk.execute("ALTER TABLE intents.action ENABLE TRIGGER ALL")

    found = desk.get("/verify").json

    assert found["valid"] is False
    assert (found["first_broken"]["sequence"], found["first_broken"]["reason"]) == (sequence, reason)


def test_a_long_chain_is_verified_in_parts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("intents.usecases.reads.VERIFIED_AT_ONCE", 4)
    monkeypatch.setattr("intents.usecases.reads._VERIFIED_PAGE", 2)
    for _ in range(7):
        desk.created(create())

    first = desk.get("/verify").json
    second = desk.get(f"/verify?next_cursor={first['next_cursor']}").json

    assert (first["valid"], first["checked"], first["last_sequence"]) == (True, 4, 4)
    assert (second["valid"], second["checked"], second["last_sequence"], second["next_cursor"]) == (True, 3, 7, None)


def accepted(desk: Desk, intent_id: str, name: str) -> None:
    report(desk, intent_id, Update.ACCEPTED, broker_order_id=name)


def forget_event(desk: Desk, sequence: int) -> None:
    desk.execute("ALTER TABLE intents.account_event DISABLE TRIGGER ALL")
    desk.execute(
        "DELETE FROM intents.account_event WHERE account_id = :account_id AND sequence = :sequence", sequence=sequence
    )
    desk.execute("ALTER TABLE intents.account_event ENABLE TRIGGER ALL")


@pytest.mark.parametrize(("missing", "parts"), [(None, [True, True]), (2, [False]), (6, [True, False])])
def test_a_missing_account_event_is_found_in_the_part_in_which_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, missing: int | None, parts: list[bool]
) -> None:
    monkeypatch.setattr("intents.usecases.reads.VERIFIED_AT_ONCE", 2)
    monkeypatch.setattr("intents.usecases.reads._VERIFIED_PAGE", 2)
    for place in range(3):  # actions are 1, 3 and 5, account events 2, 4 and 6
        accepted(desk, desk.created(limit())["intent_id"], f"b{place}")
    if missing:
        forget_event(desk, missing)

    found = [desk.get("/verify").json]
    while found[-1]["next_cursor"]:
        found.append(desk.get(f"/verify?next_cursor={found[-1]['next_cursor']}").json)

    assert [one["valid"] for one in found] == parts
    named = {"sequence": missing, "action_id": None, "reason": "sequence_has_a_gap"}
    assert found[-1]["first_broken"] == (named if missing else None)


VALUES = st.recursive(
    st.text(max_size=5) | st.none(), lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=6), st.data())
def test_any_change_of_any_record_breaks_the_chain_there(contents: list[Any], data: st.DataObject) -> None:
    records, previous = [], chain.GENESIS
    for sequence, content in enumerate(contents, 1):
        record = {"id": str(sequence), **content}
        link = chain.link(previous, sequence, chain.digest(record))
        records.append({**record, "sequence": sequence, "previous_hash": previous.hex(), "hash": link.hex()})
        previous = link
    assert chain.follow(json.loads(json.dumps(records))).broken is None

    place = data.draw(st.integers(0, len(records) - 1))
    records[place] = {**records[place], "d": "more"}

    broken = chain.follow(records).broken
    assert broken is not None and broken.sequence == place + 1


def test_actions_and_account_events_share_one_sequence(desk: Desk) -> None:
    intent_id = desk.created(limit(quantity="10"))["intent_id"]
    report(desk, intent_id, Update.SUBMITTED)
    fill(desk, accept(desk, intent_id, "b-1"), "4", "99", "e-1")
    desk.created(cancel(intent_id))

    log = desk.execute("SELECT * FROM intents_api.event_log WHERE account_id = :account_id ORDER BY sequence")
    events = log.mappings().all()

    assert [(event["sequence"], event["type"]) for event in events] == [
        (1, "INTENT_ACTION"),
        (2, "BROKER_ORDER"),
        (3, "BROKER_ORDER"),
        (4, "BROKER_TRADE"),
        (5, "BROKER_ORDER"),
        (6, "INTENT_ACTION"),
    ]
    assert events[4]["payload"] == {
        "intent_id": intent_id,
        "broker_order_id": "b-1",
        "symbol": "AAPL",
        "order_side": "BUY",
        "order_kind": "Limit",
        "status": "PARTIALLY_FILLED",
        "quantity": "10",
        "filled_quantity": "4",
        "leaves_quantity": "6",
        "average_fill_price": "99",
        "limit_price": "99.50",
        "stop_price": None,
        "reason_code": None,
        "reason": None,
        "execution_id": "e-1",
        "last_quantity": "4",
        "last_price": "99",
        "outcome": None,
    }
    assert [action["sequence"] for action in desk.get().json["data"]] == [1, 6]
    assert desk.get("/verify").json["valid"] is True
    assert desk.rows("position")[0]["quantity"] == 4


def test_the_log_is_published_to_the_stream_gateway_and_nothing_else_is(desk: Desk) -> None:
    connection = psycopg2.connect(desk.platform.database_url("stream_gateway"))
    cursor = connection.cursor()
    cursor.execute("SELECT count(*) FROM intents_api.event_log; SELECT count(*) FROM intents_api.account_head")

    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        cursor.execute("SELECT * FROM intents.action")
    connection.close()


def test_pages_go_on_where_the_last_one_ended(desk: Desk) -> None:
    sequences = [desk.created(create())["sequence"] for _ in range(7)]

    seen, cursor = [], None
    while True:
        page = desk.get(f"?limit=3{f'&next_cursor={cursor}' if cursor else ''}").json
        seen += [action["sequence"] for action in page["data"]]
        assert len(page["data"]) <= 3
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == sequences
    assert desk.get("?limit=7").json["next_cursor"] is None


def test_the_latest_action_and_the_history_tell_the_state_as_it_is_now(
    desk: Desk, new_desk: Callable[..., Desk]
) -> None:
    intent_id = desk.created(limit())["intent_id"]
    cancelled = desk.created(cancel(intent_id))

    latest = desk.get(f"/{intent_id}").json
    history = desk.get(f"/{intent_id}/actions").json["data"]

    assert latest == cancelled
    assert [one["command"]["type"] for one in history] == ["CREATE", "CANCEL"]
    assert {one["state"]["status"] for one in history} == {"PENDING_CANCEL"}
    page = desk.get(f"/{intent_id}/actions?limit=1").json
    assert desk.get(f"/{intent_id}/actions?limit=1&next_cursor={page['next_cursor']}").json["data"] == [latest]
    other = new_desk(organization=desk.organization)
    assert other.get(f"/{intent_id}").status_code == other.get(f"/{intent_id}/actions").status_code == 404
