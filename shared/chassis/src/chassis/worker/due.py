"""Which periodic tasks have something to do: found out for all of them in one transaction, instead of in one each."""

import math
import threading
import time
from collections.abc import Callable, Mapping

from sqlalchemy import Connection, Engine

from chassis import logs

log = logs.get(__name__)

EVERY_S = 1.0

Find = Callable[[Connection], object]


class DueTasks:
    """Safe in threads. What was found counts for `EVERY_S`; what cannot be found out, for everything."""

    def __init__(self, engine: Engine, finders: Mapping[str, Find]) -> None:
        self._engine, self._finders = engine, finders
        self._lock = threading.Lock()
        self._found: frozenset[str] = frozenset()
        self._found_at = -math.inf

    def includes(self, task: str) -> bool:
        with self._lock:
            if time.monotonic() - self._found_at >= EVERY_S:
                self._found_at = time.monotonic()
                self._found = self._find()
            return task in self._found

    def find_again(self) -> None:
        """Something has changed: what was found no longer counts."""
        self._found_at = -math.inf

    def _find(self) -> frozenset[str]:
        try:
            with self._engine.begin() as tx:
                return frozenset(task for task, find in self._finders.items() if find(tx))
        except Exception as error:  # noqa: BLE001 - each task meets it by itself, and none waits for another's
            log.warning("due_tasks_unknown", error=type(error).__name__)
            return frozenset(self._finders)
