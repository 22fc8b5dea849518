"""Runs a set of processes: in order, restarted when they die, stopped in reverse order.

waiting -> starting -> ready
   ^          |          |
   +- backoff <----------+      (exit code 2 before it was ever ready: a configuration error, everything stops)
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from types import FrameType

from tip_local.copies import Copy, Nursery
from tip_local.errors import Fault
from tip_local.logbook import LogBook
from tip_local.processes import with_parent_death_signal

CONFIGURATION_ERROR = 2
BACKOFF_FIRST_SECONDS = 0.5
"""Before the second restart in a row; the first is at once, each further one waits twice as long."""
BACKOFF_MOST_SECONDS = 10.0
SETTLED_SECONDS = 10.0
"""A process that has been ready for this long is restarted at once again when it dies."""
UNPROBED_READY_SECONDS = 2.5
"""A process without a readiness check counts as ready when it has lived this long: a second or two is imports."""
COPIED_READY_SECONDS = 1.0
"""A copy has imported everything when it begins."""
UNPROBED_STARTUP_SECONDS = 15.0
READY_SECONDS = 60.0
START_ATTEMPTS = 5
"""A process that died this often without ever having been ready will not be by waiting."""
STOP_SECONDS = 10.0
TICK_SECONDS = 0.05


class State(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    BACKOFF = "restarting"


class StopRequested(Exception):
    """SIGINT or SIGTERM arrived while something was under way that does not look at the clock."""


@dataclass(frozen=True)
class Process:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    ready: Callable[[], bool] | None = None
    after: tuple[str, ...] = ()
    before: Callable[[], Mapping[str, str]] | None = None
    """Called before every start; what it returns is added to the environment."""
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    """What the process gets when the supervisor itself is killed."""
    identity: str = "same"
    descriptors: tuple[int, ...] = ()
    """Open files that it shares with the supervisor, under the same numbers."""
    niceness: int = 0
    copied: tuple[str, ...] = ()
    """A module and its arguments, if the process is made as a copy of the nursery instead of by `argv`."""


@dataclass
class Child:
    process: Process
    state: State = State.WAITING
    popen: subprocess.Popen[bytes] | Copy | None = None
    since: datetime | None = None
    started: float = 0.0
    ready_from: float | None = None
    probe: "Future[bool] | None" = None
    """The readiness check under way."""
    retry_at: float = 0.0
    deaths_in_a_row: int = 0
    restarts: int = 0
    was_ready: bool = False

    @property
    def pid(self) -> int | None:
        return self.popen.pid if self.popen and self.popen.returncode is None else None


@dataclass
class Supervisor:
    log: LogBook
    on_change: Callable[[list[Child]], None] = lambda _: None
    children: dict[str, Child] = field(default_factory=dict)
    stop_requested: bool = False
    nursery: Nursery | None = None
    _interruptible: bool = False
    _probes: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 16, "probe"))

    def handle_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = True
        if self._interruptible:
            self._interruptible = False
            raise StopRequested

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """For work between starts, such as a migration: a stop request breaks it off."""
        if self.stop_requested:
            raise StopRequested
        self._interruptible = True
        try:
            yield
        finally:
            self._interruptible = False

    def start(self, processes: Iterable[Process], seconds: float = READY_SECONDS) -> None:
        """Start them, each after those it names, and return when all are ready."""
        for process in processes:
            self.children[process.name] = Child(process)
        deadline = time.monotonic() + seconds
        while unready := [child.process.name for child in self.children.values() if child.state is not State.READY]:
            if self.stop_requested:
                raise StopRequested
            if time.monotonic() > deadline:
                raise Fault(f"not ready within {seconds:g} s: {', '.join(unready)}")
            self.tick()
            time.sleep(TICK_SECONDS)

    def run(self) -> None:
        """Keep everything running until a stop is requested."""
        while not self.stop_requested:
            self.tick()
            time.sleep(TICK_SECONDS)

    def tick(self) -> None:
        for child in self.children.values():
            before = (child.state, child.pid)
            self._step(child)
            if (child.state, child.pid) != before:
                self.on_change(list(self.children.values()))

    def _step(self, child: Child) -> None:
        if child.popen and (code := child.popen.poll()) is not None:
            self._note_death(child, code)
        elif child.state is State.STARTING and self._is_ready(child):
            child.state, child.was_ready, child.ready_from = State.READY, True, time.monotonic()
        elif child.state is State.WAITING and self._may_start(child):
            self._spawn(child)
        elif child.state is State.BACKOFF and time.monotonic() >= child.retry_at:
            child.restarts += 1
            self._spawn(child)

    def _is_ready(self, child: Child) -> bool:
        """Asked in a thread: one that answers slowly must not hold up the restart of another."""
        if child.process.ready is None:
            seconds = COPIED_READY_SECONDS if self.nursery and child.process.copied else UNPROBED_READY_SECONDS
            return time.monotonic() - child.started >= seconds
        if child.probe and child.probe.done():
            ready, child.probe = child.probe.result(), None
            return ready
        if child.probe is None:
            child.probe = self._probes.submit(child.process.ready)
        return False

    def _may_start(self, child: Child) -> bool:
        first = [self.children[name] for name in child.process.after if name in self.children]
        return all(other.state is State.READY for other in first)

    def _spawn(self, child: Child) -> None:
        process = child.process
        try:
            extra = process.before() if process.before else {}
            child.popen = self._started(process, {**process.env, **extra})
        except Fault as fault:
            if not child.was_ready:
                raise
            self._back_off(child, str(fault))
            return
        if child.popen.stdout:
            self.log.follow(process.name, child.popen.stdout)
        child.state, child.since, child.started = State.STARTING, datetime.now(UTC), time.monotonic()
        child.ready_from, child.probe = None, None

    def _started(self, process: Process, env: Mapping[str, str]) -> subprocess.Popen[bytes] | Copy:
        if self.nursery and process.copied:
            options = (process.death_signal, process.descriptors, process.niceness)
            return Copy(self.nursery, process.name, process.copied, env, *options)
        return subprocess.Popen(
            with_parent_death_signal(list(process.argv), process.death_signal, process.identity, process.niceness),
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the terminal is for the supervisor alone
            pass_fds=process.descriptors,
        )

    def _note_death(self, child: Child, code: int) -> None:
        end_group(child, signal.SIGKILL)
        child.popen = None
        if code == CONFIGURATION_ERROR and is_starting_up(child):
            raise Fault(f"{child.process.name} refuses its configuration: {self.log.last_words(child.process.name)}")
        self._back_off(child, exit_words(code))

    def _back_off(self, child: Child, why: str) -> None:
        settled = child.ready_from is not None and time.monotonic() - child.ready_from > SETTLED_SECONDS
        child.deaths_in_a_row = 1 if settled else child.deaths_in_a_row + 1
        if not child.was_ready and child.deaths_in_a_row >= START_ATTEMPTS:
            words = self.log.last_words(child.process.name)
            raise Fault(f"{child.process.name} does not start ({why}, {START_ATTEMPTS} times): {words}")
        delay = backoff_seconds(child.deaths_in_a_row)
        child.state, child.retry_at = State.BACKOFF, time.monotonic() + delay
        when = f"in {delay:g} s" if delay else "at once"
        self.log.say(f"{child.process.name} died ({why}), restarting {when}")

    def stop(self) -> None:
        """Stop all; those that were started last go first, those that wait for the same ones go together."""
        remaining = dict(self.children)
        while remaining:
            needed = {name for child in remaining.values() for name in child.process.after}
            layer = [remaining.pop(name) for name in list(remaining) if name not in needed]
            self._stop_layer(layer or [remaining.popitem()[1]])
            self.on_change(list(remaining.values()))
        self.children.clear()

    def _stop_layer(self, layer: list[Child]) -> None:
        for child in layer:
            if child.pid:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, child.process.stop_signal)
        deadline = time.monotonic() + STOP_SECONDS
        for child in layer:
            self._outlast(child, deadline)

    def _outlast(self, child: Child, deadline: float) -> None:
        if child.popen is None:
            return
        try:
            child.popen.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.log.say(f"{child.process.name} did not stop within {STOP_SECONDS:g} s, killed")
        end_group(child, signal.SIGKILL)
        child.popen.wait()


def backoff_seconds(deaths_in_a_row: int) -> float:
    if deaths_in_a_row <= 1:
        return 0.0
    return min(BACKOFF_FIRST_SECONDS * 2.0 ** min(deaths_in_a_row - 2, 10), BACKOFF_MOST_SECONDS)


def is_starting_up(child: Child) -> bool:
    """Without a readiness check, having lived for a moment proves little: it may still have been importing."""
    if child.process.ready:
        return not child.was_ready
    return child.restarts == 0 and time.monotonic() - child.started < UNPROBED_STARTUP_SECONDS


def end_group(child: Child, number: signal.Signals) -> None:
    """Also what the process had started itself: each leads a group of its own."""
    if child.popen:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.popen.pid, number)


def exit_words(code: int) -> str:
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit {code}"
