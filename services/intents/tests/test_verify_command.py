"""`tip verify`: the chain checked without the service."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tip.verify import command
from tip.verify import records as read
from tip_testing.commands import cancel, create, limit

from .broker_side import accepted
from .conftest import Desk
from .test_chain import forget_entry


def verify(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(command, list(arguments), **options)


@pytest.fixture
def records(desk: Desk) -> list[Any]:
    intent_id = desk.created(limit())["intent_id"]
    desk.created(cancel(intent_id))
    desk.created(create())
    found: list[Any] = desk.get().json["data"]
    return found


def test_records_saved_from_the_api_prove_themselves(records: list[Any], tmp_path: Path) -> None:
    lines, page = tmp_path / "lines", tmp_path / "page"
    lines.write_text("\n".join(json.dumps(record) for record in records))
    page.write_text(json.dumps({"data": records[:2], "next_cursor": "x"}) + json.dumps({"data": records[2:]}))

    for file in (lines, page):
        result = verify(str(file))
        assert result.exit_code == 0
        assert "3 entries verified, up to sequence 3" in result.output
        assert "whether one is missing between them only a statement shows" in result.output


def test_the_first_broken_link_is_named(records: list[Any]) -> None:
    records[1]["actor"]["id"] = "somebody else"

    result = verify("-", input=json.dumps(records))

    assert result.exit_code == 3
    assert f"BROKEN at sequence 2 ({records[1]['id']}): altered; 1 entries before it are good" in result.output


def test_events_between_the_actions_of_a_file_do_not_break_it(desk: Desk) -> None:
    accepted(desk, desk.created(limit())["intent_id"], "b")
    desk.created(create())

    result = verify("-", input=json.dumps(desk.get().json))

    assert "2 entries verified, up to sequence 3" in result.output


def test_the_database_is_verified_directly(desk: Desk, records: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", desk.platform.admin_url)

    good = verify("--account", str(desk.account_id))
    desk.execute("ALTER TABLE intents.action DISABLE TRIGGER ALL")
    desk.execute("DELETE FROM intents.action WHERE account_id = :account_id AND sequence = 3")
    desk.execute("ALTER TABLE intents.action ENABLE TRIGGER ALL")
    bad = verify("--account", str(desk.account_id))

    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert "last_actions_missing" in bad.output


def test_a_missing_account_event_is_found_in_the_database(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", desk.platform.admin_url)
    accepted(desk, desk.created(limit())["intent_id"], "b")
    desk.created(create())

    good = verify("--account", str(desk.account_id))
    forget_entry(desk, 2)
    bad = verify("--account", str(desk.account_id))

    assert (good.exit_code, bad.exit_code) == (0, 3)
    assert "sequence_has_a_gap" in bad.output


def test_a_large_file_takes_time_in_proportion(records: list[Any]) -> None:
    line = json.dumps(records[0])

    def seconds(lines: int) -> float:
        started = time.process_time()
        assert verify("-", input="\n".join([line] * lines)).exit_code == 3
        assert sum(1 for _ in read(io.StringIO("\n".join([line] * lines)))) == lines
        return time.process_time() - started

    assert seconds(16_000) < 12 * max(seconds(4_000), 0.05)  # it was sixteen times and more


@pytest.mark.parametrize(
    "text",
    [
        *("[1]", "{", '{"data": [{}]}', '"x"', "[" * 100_000),
        '{"sequence": 1, "previous_hash": "", "hash": ""}',
        '{"id": "x", "sequence": 99999999999999999999, "previous_hash": "", "hash": ""}',
    ],
)
def test_a_file_of_something_else_is_a_clear_error(text: str) -> None:
    result = verify("-", input=text)

    assert result.exit_code == 1
    assert "does not hold action records" in str(result.exception)


def test_one_source_must_be_given() -> None:
    assert verify().exit_code == 2
