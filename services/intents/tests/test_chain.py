"""The chain of hashes over the log: whatever is changed, removed or moved is found."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intents import store
from intents.model import chain
from intents.store import METADATA, append_to_all
from tip_testing.commands import cancel, create, limit

from .broker_side import accept, accepted, fill
from .conftest import Desk

ACCOUNT_EVENT = {"id": uuid4(), "type": "ACCOUNT", "payload": {"é": "ü"}, "occurred_at": datetime.now(UTC)}


def test_the_chain_holds_over_every_kind_of_command(desk: Desk) -> None:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(cancel(intent_id))
    desk.created(create())

    records = desk.get().json["data"]

    assert records[0]["previous_hash"] == "00" * 32
    assert [record["previous_hash"] for record in records[1:]] == [record["hash"] for record in records[:-1]]
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
        2,
        "sequence_has_a_gap",
    ),
    "a missing beginning": (
        "DELETE FROM intents.action WHERE account_id = :account_id AND sequence = 1",
        1,
        "sequence_has_a_gap",
    ),
    "a missing end": (
        "DELETE FROM intents.action WHERE account_id = :account_id AND sequence >= 4",
        4,
        "last_actions_missing",
    ),
    "a moved sequence": (
        "UPDATE intents.action SET sequence = 9 WHERE account_id = :account_id AND sequence = 4",
        4,
        "last_actions_missing",
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


def as_superuser(desk: Desk, *changes: str) -> None:
    """Change what the log does not let anybody change."""
    for table in ("action", "account_event"):
        desk.execute(f"ALTER TABLE intents.{table} DISABLE TRIGGER ALL")
    for change in changes:
        desk.execute(change)
    for table in ("action", "account_event"):
        desk.execute(f"ALTER TABLE intents.{table} ENABLE TRIGGER ALL")


def forget_entry(desk: Desk, sequence: int) -> None:
    where = f"account_id = :account_id AND sequence = {sequence}"
    as_superuser(desk, f"DELETE FROM intents.action WHERE {where}", f"DELETE FROM intents.account_event WHERE {where}")


def test_actions_and_events_are_one_chain(desk: Desk) -> None:
    for place in range(2):
        accepted(desk, desk.created(limit())["intent_id"], f"b{place}")
    append_to_all(desk.admin, desk.organization.id, [desk.account_id], ACCOUNT_EVENT)
    desk.created(create())

    log = store.entries(desk.admin, desk.account_id, 0, 99)

    assert [entry.sequence for entry in log] == [1, 2, 3, 4, 5, 6]
    assert [entry.previous_hash for entry in log] == [chain.GENESIS, *(entry.hash for entry in log[:-1])]
    assert desk.get("/verify").json["valid"] is True


def test_fills_of_one_batch_are_chained_in_order(desk: Desk) -> None:
    order = accept(desk, desk.created(limit(quantity="10"))["intent_id"], "b")
    fill(desk, order, "4", "100", "e1")

    sequences = [entry.sequence for entry in store.entries(desk.admin, desk.account_id, 0, 99)]

    assert len({row["created_at"] for row in desk.rows("account_event") if row["type"] != "BROKER_ORDER"}) == 1
    assert sequences == list(range(1, len(sequences) + 1)) and len(sequences) >= 4
    assert desk.get("/verify").json["valid"] is True


EVENT_COLUMNS = {
    "organization_id": "gen_random_uuid()",
    "id": "gen_random_uuid()",
    "type": "'ACCOUNT'",
    "intent_id": "gen_random_uuid()",
    "broker_execution_id": "'forged'",
    "from_status": "'FILLED'",
    "to_status": "'CANCELED'",
    "intent_created_at": "now()",
    "payload": 'payload || \'{"filled_quantity": "2"}\'',
    "traceparent": "'forged'",
    "occurred_at": "occurred_at + interval '1 microsecond'",
    "created_at": "created_at + interval '1 microsecond'",
}


@pytest.mark.parametrize("column", EVENT_COLUMNS)
def test_every_column_of_an_event_is_covered_by_its_hash(desk: Desk, column: str) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    value = EVENT_COLUMNS[column]

    as_superuser(desk, f"UPDATE intents.account_event SET {column} = {value} WHERE account_id = :account_id")

    broken = chain.follow(store.entries(desk.admin, desk.account_id, 0, 2)).broken
    assert broken and (broken.sequence, broken.reason) == (2, "altered")


def test_no_column_of_an_event_is_left_out_of_that_test() -> None:
    columns = {column.name for column in METADATA.tables["intents.account_event"].columns}

    assert columns - set(EVENT_COLUMNS) == {"account_id", "sequence", "previous_hash", "hash"}


def test_a_hash_of_an_event_does_not_depend_on_the_time_zone_of_a_session(desk: Desk) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    desk.execute("SET TIME ZONE 'Asia/Kolkata'")

    end = chain.follow(store.entries(desk.admin, desk.account_id, 0, 2))

    desk.execute("RESET TIME ZONE")
    assert (end.sequence, end.broken) == (2, None)


def test_events_from_before_they_were_chained_are_passed_over(desk: Desk) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    [first] = desk.rows("action")
    as_superuser(desk, "UPDATE intents.account_event SET previous_hash = '', hash = '' WHERE account_id = :account_id")
    desk.execute("UPDATE intents.account_head SET last_hash = :hash WHERE account_id = :account_id", hash=first["hash"])
    desk.created(create())

    assert desk.get("/verify").json["valid"] is True


@pytest.mark.parametrize(
    ("missing", "parts", "reason"),
    [
        (None, [True, True], None),
        (2, [False], "sequence_has_a_gap"),
        (3, [False], "sequence_has_a_gap"),
        (6, [True, False], "last_actions_missing"),
    ],
)
def test_a_missing_entry_is_found_in_the_part_in_which_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, missing: int | None, parts: list[bool], reason: str | None
) -> None:
    monkeypatch.setattr("intents.usecases.reads.VERIFIED_AT_ONCE", 3)
    monkeypatch.setattr("intents.usecases.reads._VERIFIED_PAGE", 2)
    for place in range(3):  # actions are 1, 3 and 5, account events 2, 4 and 6
        accepted(desk, desk.created(limit())["intent_id"], f"b{place}")
    if missing:
        forget_entry(desk, missing)

    found = [desk.get("/verify").json]
    while found[-1]["next_cursor"]:
        found.append(desk.get(f"/verify?next_cursor={found[-1]['next_cursor']}").json)

    assert [part["valid"] for part in found] == parts
    named = {"sequence": missing, "action_id": None, "reason": reason}
    assert found[-1]["first_broken"] == (named if missing else None)


VALUES = st.recursive(
    st.text(max_size=5) | st.none(), lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=6), st.data())
def test_any_change_of_any_record_breaks_the_chain_there(contents: list[Any], data: st.DataObject) -> None:
    records: list[Any] = []
    previous = chain.GENESIS
    for sequence, content in enumerate(contents, 1):
        record = {"id": str(sequence), **content}
        link = chain.link(previous, sequence, chain.digest(record))
        records.append({**record, "sequence": sequence, "previous_hash": previous.hex(), "hash": link.hex()})
        previous = link
    assert chain.follow(map(chain.action_entry, json.loads(json.dumps(records)))).broken is None

    place = data.draw(st.integers(0, len(records) - 1))
    records[place] = {**records[place], "d": "more"}

    for follow in (chain.follow, chain.follow_excerpt):
        broken = follow(map(chain.action_entry, records)).broken
        assert broken is not None and broken.sequence == place + 1
