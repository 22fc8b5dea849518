"""One process of the platform, and how to stop, continue, kill and start it."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tip_local.processes import with_parent_death_signal
from tip_testing import processes
from tip_testing.forked import can_fork


@dataclass
class Child:
    """One process, and how to start it again."""

    kind: str
    arguments: list[str]
    """Of Python."""
    environment: dict[str, str]
    log: Path
    process: processes.Running | None = None
    doomed: bool = False
    """Whether it will kill itself at a named step."""

    def start(self, **more: str) -> None:
        """Call it from the main thread: the process dies with the thread that started it."""
        self.doomed = "TIP_CRASH_AT" in more
        environment = {**self.environment, **more}
        # A copy ends with the process that it is a copy of, and that one with us.
        forked = can_fork(self.arguments, {**os.environ, **environment})
        before = () if forked else with_parent_death_signal([], signal.SIGKILL)
        self.process = processes.start(*self.arguments, environment=environment, log=self.log, before=before)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.returncode() is None

    @property
    def stopped(self) -> bool:
        """Whether a SIGSTOP holds it, also one of its own."""
        shown = subprocess.run(["ps", "-o", "stat=", "-p", str(self.pid)], check=False, capture_output=True, text=True)
        return shown.stdout.startswith("T")

    def workers(self) -> list[int]:
        """Of gunicorn: the processes that do the work."""
        return children_of(self.pid)

    def kill(self) -> None:
        """kill -9 of the process and everything it started; of one that has ended the pid may be another's by now."""
        if self.process is None or not self.alive:
            return
        send((*self.workers(), self.pid), signal.SIGKILL)
        self.process.wait()


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def send(pids: Iterable[int], what: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, what)


@dataclass
class Freezer:
    """SIGSTOP now, SIGCONT later, by a thread of its own: the caller does not wait."""

    frozen: dict[int, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def freeze(self, kind: str, pids: Iterable[int], seconds: float | None) -> list[int]:
        """Without `seconds` until `thaw`. A number that is frozen already keeps its own time."""
        with self._lock:
            chosen = [pid for pid in pids if pid not in self.frozen]
            self.frozen |= dict.fromkeys(chosen, kind)
        send(chosen, signal.SIGSTOP)
        if seconds is not None:
            timer = threading.Timer(seconds, self.thaw, (chosen,))
            timer.daemon = True
            timer.start()
        return chosen

    def thaw(self, pids: Iterable[int] | None = None) -> None:
        """These, or all that are frozen; who has been killed meanwhile is only forgotten."""
        with self._lock:
            chosen = [pid for pid in (list(self.frozen) if pids is None else pids) if self.frozen.pop(pid, None)]
        send(chosen, signal.SIGCONT)

    def forget(self, pids: Iterable[int]) -> None:
        """They are about to be killed as they are: the numbers may mean others soon."""
        with self._lock:
            for pid in pids:
                self.frozen.pop(pid, None)

    def kinds(self) -> set[str]:
        with self._lock:
            return set(self.frozen.values())
