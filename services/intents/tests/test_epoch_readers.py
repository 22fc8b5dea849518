"""Who reads the log epoch of intents: cursors, `verify`, the scheduler, and the operator's `tip epoch`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import NullPool, create_engine, text

from chassis import db
from intents import store, usecases
from intents.usecases import reads
from tip import cli
from tip_testing.commands import create, limit, replace
from tip_testing.platform_plugin import Platform

from .conftest import Desk

_SEEM_RESTORED = text("""
    UPDATE intents.log_epoch SET database_identity = gen_random_uuid()
    WHERE number = (SELECT max(number) FROM intents.log_epoch)
""")


def begin_epoch(desk: Desk) -> UUID:
    with create_engine(db.with_driver(desk.platform.admin_url), poolclass=NullPool).begin() as tx:
        return store.begin_epoch(tx)


@contextmanager
def without_trigger(desk: Desk) -> Iterator[None]:
    desk.admin.execute(text("ALTER TABLE intents.log_epoch DISABLE TRIGGER log_epoch_append_only"))
    yield
    desk.admin.execute(text("ALTER TABLE intents.log_epoch ENABLE TRIGGER log_epoch_append_only"))


def seem_restored(desk: Desk) -> None:
    """As if the newest epoch had begun in a database that this one was restored from."""
    with without_trigger(desk):
        desk.admin.execute(_SEEM_RESTORED)


def view(desk: Desk) -> tuple[UUID, str]:
    row = desk.admin.execute(text("SELECT epoch, reason FROM intents_api.log_epoch")).one()
    return row.epoch, row.reason


@pytest.fixture
def paths_with_cursor(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each of the paths with a cursor, as it goes on after its first page."""
    monkeypatch.setattr(reads, "VERIFIED_AT_ONCE", 1)
    monkeypatch.setattr(reads, "_VERIFIED_PAGE", 1)
    intent_id = desk.created(limit())["intent_id"]
    desk.admin.execute(
        text("UPDATE intents.intent SET status = 'ACCEPTED' WHERE id = :id"), {"id": intent_id}
    )  # so that it can be replaced
    desk.created(replace(intent_id))
    desk.created(create())
    paths = ("?limit=1", f"/{intent_id}/actions?limit=1", "/verify?")
    return [f"{path}&next_cursor={desk.get(path).json['next_cursor']}" for path in paths]


def test_a_cursor_goes_on_within_its_epoch(desk: Desk, paths_with_cursor: list[str]) -> None:
    assert [desk.get(path).status_code for path in paths_with_cursor] == [200, 200, 200]


def test_a_cursor_of_another_epoch_says_to_begin_the_list_anew(desk: Desk, paths_with_cursor: list[str]) -> None:
    begin_epoch(desk)

    for path in paths_with_cursor:
        answer = desk.get(path)
        assert (answer.status_code, answer.json["code"]) == (400, "bad_cursor")
        assert "Begin the list anew" in answer.json["detail"]


def test_verify_says_which_epoch_it_has_followed(desk: Desk) -> None:
    begun = begin_epoch(desk)

    assert desk.get("/verify").json["log_epoch"] == str(begun)


@pytest.mark.parametrize("path", ["", "/verify"])
def test_a_reader_that_notices_a_restore_begins_the_epoch_for_good(desk: Desk, path: str) -> None:
    before, _ = view(desk)
    seem_restored(desk)

    assert desk.get(path).status_code == 200

    begun, reason = view(desk)
    assert begun != before and reason == "RESTORED"
    assert desk.get("/verify").json["log_epoch"] == str(begun)


def test_the_scheduler_notices_a_restore_for_those_who_read_the_view(desk: Desk) -> None:
    before, _ = view(desk)
    seem_restored(desk)
    assert view(desk)[0] == before

    usecases.run_maintenance(desk.deps)

    assert view(desk)[0] != before and view(desk)[1] == "RESTORED"


@pytest.fixture
def tip(fresh_platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    monkeypatch.setenv("TIP_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DATABASE_URL", fresh_platform.admin_url)
    return lambda *words: CliRunner().invoke(cli.main, words)


def test_the_operator_begins_an_epoch_and_sees_the_history(
    tip: Callable[..., Result], fresh_platform: Platform
) -> None:
    begun = tip("epoch", "begin")
    listed = tip("epoch", "list")

    with fresh_platform.admin() as admin:
        epochs = store.epochs(admin)
    assert begun.exit_code == 0 and str(epochs[-1].epoch) in begun.output
    assert epochs[-1].reason == "OPERATOR"
    assert [line.split()[0] for line in listed.output.splitlines()[1:]] == [str(row.epoch) for row in epochs]
