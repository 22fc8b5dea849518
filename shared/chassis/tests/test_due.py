"""Which periodic tasks have something to do is found out for all of them at once."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from chassis.worker import due
from chassis.worker.due import DueTasks, Find


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    seconds = [100.0]
    monkeypatch.setattr(due.time, "monotonic", lambda: seconds[0])
    return seconds


def finding(found: list[Any], seen: list[int]) -> Callable[[Connection], list[Any]]:
    def find(tx: Connection) -> list[Any]:
        seen.append(tx.execute(text("SELECT txid_current()")).scalar_one())
        return found

    return find


def test_one_transaction_a_second_finds_what_all_tasks_have_to_do(engine: Engine, clock: list[float]) -> None:
    seen: list[int] = []
    tasks = DueTasks(engine, {"full": finding([1], seen), "empty": finding([], seen)})

    for _ in range(10):
        assert (tasks.includes("full"), tasks.includes("empty")) == (True, False)
    assert len(seen) == 2 and len({*seen}) == 1
    clock[0] += due.EVERY_S
    tasks.includes("full")
    assert len(seen) == 4


def test_what_was_found_does_not_count_after_a_wake_up(engine: Engine, clock: list[float]) -> None:
    waiting: list[Any] = []
    tasks = DueTasks(engine, {"task": finding(waiting, [])})
    assert not tasks.includes("task")
    waiting.append(1)

    assert not tasks.includes("task")
    tasks.find_again()
    assert tasks.includes("task")


@pytest.mark.parametrize("broken", [lambda tx: tx.execute(text("SELECT nothing")), lambda _: 1 / 0])
def test_where_it_cannot_be_found_out_every_task_is_due(engine: Engine, broken: Find) -> None:
    tasks = DueTasks(engine, {"broken": broken, "other": lambda _: []})

    assert tasks.includes("broken") and tasks.includes("other")
