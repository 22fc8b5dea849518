"""Tasks that a process runs again and again."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chassis import logs, metrics
from chassis.queues import Outage
from chassis.worker.outage import unless_unavailable

log = logs.get(__name__)

LAST_TURN_S = 5.0
NOT_DUE_S = 0.25
"""Until it is checked again whether a task is due."""
_UNAVAILABLE = object()


@dataclass(frozen=True)
class PeriodicTask:
    """Something to do every so many seconds; `run_once` is all there is to it."""

    name: str
    every_s: float
    run_once: Callable[[], object]
    """True: it stopped at its batch limit and runs again at once."""
    is_due: Callable[[], bool] = lambda: True
    """Whether it has anything to do; else it is not run this time (`chassis.worker.due`)."""


def run_tasks(process: str, tasks: Sequence[PeriodicTask], stop: threading.Event) -> None:
    """Run each task in a thread of its own, so that a slow one delays no other.

    Returns when all have ended after `stop`, or `LAST_TURN_S` later.
    """
    threads = [
        threading.Thread(target=_repeat, args=(process, task, stop), name=task.name, daemon=True) for task in tasks
    ]
    for thread in threads:
        thread.start()
    stop.wait()
    deadline = time.monotonic() + LAST_TURN_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _repeat(process: str, task: PeriodicTask, stop: threading.Event) -> None:
    logs.name_thread(process)
    while not stop.is_set():
        if not task.is_due():
            stop.wait(min(task.every_s, NOT_DUE_S))
        elif not run_task(process, task):
            stop.wait(task.every_s)


def run_task(process: str, task: PeriodicTask) -> bool:
    """Run it once; whether more is waiting. A failure is logged and counted, and the task is due again as usual."""
    more: object = None
    result = "done"
    try:
        more = unless_unavailable(process, task.run_once, _UNAVAILABLE)
        if more is _UNAVAILABLE:
            result = "unavailable"
    except Outage as outage:
        result = "unavailable"
        log.warning("task_postponed", task=task.name, error=str(outage))
    except Exception as error:
        result = "failed"
        log.error("task_failed", task=task.name, exc_info=error)
    metrics.TASK_RUNS.labels(process, task.name, result).inc()
    return more is True
