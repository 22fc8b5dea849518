"""Several jobs in one process: each has its own thread and name, and none goes on without the others."""

import threading
import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue

from chassis import logs

log = logs.get(__name__)

Loop = Callable[[threading.Event], None]

LAST_TURN_S = 8.0
"""Of the ten seconds in which a process ends."""


def run_together(loops: Mapping[str, Loop], stop: threading.Event) -> None:
    """Run each loop until `stop` is set. When one ends before, all end; its error is raised."""
    ended: SimpleQueue[Exception | None] = SimpleQueue()
    threads = [
        threading.Thread(target=_run, args=(name, loop, stop, ended), name=name, daemon=True)
        for name, loop in loops.items()
    ]
    for thread in threads:
        thread.start()
    error = ended.get()
    stop.set()
    deadline = time.monotonic() + LAST_TURN_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if error:
        raise error


def _run(name: str, loop: Loop, stop: threading.Event, ended: "SimpleQueue[Exception | None]") -> None:
    logs.name_thread(name)
    try:
        loop(stop)
    except Exception as error:
        log.error("job_failed", exc_info=error)
        ended.put(error)
    else:
        ended.put(None)
