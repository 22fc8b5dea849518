"""Processes of the platform under test: one way to start, freeze and end them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tip_testing.forked import ForkedProcess, can_fork
from tip_testing.waiting import eventually

READY_SECONDS = 60.0


class Process(Protocol):
    """What `subprocess.Popen` and `ForkedProcess` have in common."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...


@dataclass(frozen=True)
class Running:
    """A process of ours. Whoever starts it ends it."""

    process: Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def returncode(self) -> int | None:
        """None while it runs."""
        return self.process.poll()

    def wait(self, seconds: float = 60) -> int:
        return self.process.wait(seconds)

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGKILL, seconds: float = 60) -> int:
        """Send the signal, also to one that is frozen, and wait; the exit code."""
        if self.returncode() is None:
            self.send(number)
            self.send(signal.SIGCONT)
        return self.wait(seconds)

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)

    def thaw(self) -> None:
        self.send(signal.SIGCONT)

    def is_frozen(self) -> bool:
        return _state(self.pid) == "T"

    def output(self) -> str:
        return self.log.read_text()


def _state(pid: int) -> str:
    """The letter that `ps` shows for it; empty if there is none."""
    if sys.platform == "linux":
        stat = Path(f"/proc/{pid}/stat")
        return stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else ""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], check=False, capture_output=True, text=True)
    return shown.stdout.strip()[:1]


Ready = Callable[[Running], object]


def start(
    *arguments: str,
    environment: Mapping[str, str],
    log: Path | None = None,
    ready: Ready | None = None,
    before: Sequence[str] = (),
) -> Running:
    """Run Python with these arguments (`"-m", "controls.worker", "relay"`) and these variables on top of our own.

    It writes to the end of `log`. Returns when `ready` is true of it; fails with the log when it ends before that.
    `before` is put in front of the command.
    """
    log, environment = log or _new_log(), {**os.environ, **environment}
    log.touch()
    if not before and can_fork(arguments, environment):
        running = Running(ForkedProcess(arguments, environment, log), log)
    else:
        running = Running(_executed([*before, sys.executable, *arguments], environment, log), log)
    if ready:
        _wait(running, ready)
    return running


def _executed(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Process:
    with log.open("ab") as file:
        return subprocess.Popen(command, env=environment, stdout=file, stderr=file)


def _wait(running: Running, ready: Ready) -> None:
    try:
        eventually(lambda: ready(running) or running.returncode() is not None, READY_SECONDS)
        if running.returncode() is not None:
            raise AssertionError(running.output())
    except BaseException:
        running.end()
        raise


def _new_log() -> Path:
    """In the home of this run, which is removed at its end."""
    descriptor, name = tempfile.mkstemp(suffix=".log", dir=os.environ.get("TIP_HOME"))
    os.close(descriptor)
    return Path(name)


@contextmanager
def running(
    *arguments: str, environment: Mapping[str, str], log: Path | None = None, ready: Ready | None = None
) -> Iterator[Running]:
    """The same, ended with the block."""
    started = start(*arguments, environment=environment, log=log, ready=ready)
    try:
        yield started
    finally:
        started.end()
