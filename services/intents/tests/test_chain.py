"""The chain of hashes over the log: whatever is changed, removed or moved is found."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intents import store
from intents.model import chain
from tip_testing.commands import cancel, create, limit

from .broker_side import accepted
from .conftest import Desk


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

    assert [part["valid"] for part in found] == parts
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
