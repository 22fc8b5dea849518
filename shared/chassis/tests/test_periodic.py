"""Periodic tasks: each on its own, and none that can end the process."""

import threading
from collections.abc import Callable

import pytest
from sqlalchemy.exc import OperationalError

from chassis import metrics
from chassis.queues import Outage
from chassis.worker.periodic import PeriodicTask, run_task, run_tasks

PROCESS = "test-scheduler"


class Impatient(threading.Event):
    """A request to stop, for which nobody waits longer than a moment, however long the period is."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.pauses.append(timeout)
        return super().wait(timeout and 0.001)


def raises(error: Exception) -> Callable[[], object]:
    def run_once() -> object:
        raise error

    return run_once


def runs(task: str, result: str) -> float:
    return metrics.TASK_RUNS.labels(PROCESS, task, result)._value.get()


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (RuntimeError("a fault of ours"), "failed"),
        (Outage("redis"), "unavailable"),
        (OperationalError("", {}, Exception()), "unavailable"),
    ],
    ids=["fault", "outage", "database"],
)
def test_a_failure_is_counted_and_not_raised(error: Exception, result: str) -> None:
    before = runs("task", result)

    assert run_task(PROCESS, PeriodicTask("task", 1.0, raises(error))) is False

    assert runs("task", result) == before + 1


@pytest.mark.parametrize(("returned", "more"), [(True, True), (False, False), (None, False), (1, False)])
def test_only_a_task_that_says_so_has_more_to_do(returned: object, more: bool) -> None:
    assert run_task(PROCESS, PeriodicTask("task", 1.0, lambda: returned)) is more


def test_a_failing_task_and_a_slow_one_delay_no_other() -> None:
    stop, slow_ends = Impatient(), threading.Event()
    turns: list[int] = []

    def count() -> None:
        turns.append(1)
        if len(turns) == 5:
            stop.set()
            slow_ends.set()

    tasks = [
        PeriodicTask("failing", 600.0, raises(RuntimeError())),
        PeriodicTask("slow", 600.0, slow_ends.wait),
        PeriodicTask("counting", 600.0, count),
    ]
    run_tasks(PROCESS, tasks, stop)

    assert len(turns) == 5 and set(stop.pauses) == {None, 600.0}


def test_a_task_with_more_to_do_runs_again_without_a_pause() -> None:
    stop = Impatient()
    left = [True, True, False]

    def batch() -> bool:
        more = left.pop(0)
        if not more:
            stop.set()
        return more

    run_tasks(PROCESS, [PeriodicTask("batches", 600.0, batch)], stop)

    assert left == [] and stop.pauses.count(600.0) == 1
