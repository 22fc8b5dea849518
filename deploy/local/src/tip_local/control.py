"""Start, stop and look at a platform that runs without a terminal."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tip_local.errors import Fault
from tip_local.home import Home
from tip_local.logbook import MERGED_NAME
from tip_local.processes import command_line, wait_until
from tip_local.settings import Settings
from tip_local.tail import last_lines

START_SECONDS = 180.0
STOP_SECONDS = 90.0
POLL_SECONDS = 0.05
LAST_BREATH_SECONDS = 5.0
"""From giving up the lock to the end of the process."""
TAIL_LINES = 15


@dataclass(frozen=True)
class ProcessStatus:
    name: str
    state: str
    pid: int | None
    since: datetime | None
    restarts: int


@dataclass(frozen=True)
class Status:
    pid: int
    ready: bool
    since: datetime
    processes: tuple[ProcessStatus, ...]
    local: dict[str, Any]
    """What local.json holds; nothing until everything was ready once."""


def start(settings: Settings) -> dict[str, object]:
    """Returns what local.json holds when everything is ready."""
    home = Home(settings.home)
    home.create()
    home.logs.mkdir(mode=0o700, exist_ok=True)
    errors = home.logs / "start.log"
    began = time.time()
    with errors.open("wb") as sink:
        child = subprocess.Popen(
            [sys.executable, "-m", "tip_local"],
            env={**os.environ, "TIP_HOME": str(home.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=sink,
            start_new_session=True,
        )
    try:
        wait_until_ready(home, child, time.monotonic() + START_SECONDS)
    except BaseException:  # also Ctrl-C: a start that was given up leaves nothing running
        child.terminate()
        child.wait()
        sys.stderr.write(tail_since(home, began))
        raise
    return dict(json.loads(home.local_file.read_text()))


def wait_until_ready(home: Home, child: "subprocess.Popen[bytes]", deadline: float) -> None:
    while not is_ready(home, child.pid):
        if child.poll() is not None:
            lines = last_lines(home.logs / "start.log", 1) or [f"it ended with exit code {child.returncode}"]
            raise Fault(lines[-1].removeprefix("tip: "))
        if time.monotonic() > deadline:
            raise Fault(f"not ready within {START_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def is_ready(home: Home, pid: int) -> bool:
    state = home.state()
    return state.get("pid") == pid and bool(state.get("ready"))


def tail_since(home: Home, began: float) -> str:
    """The end of the log, if this start wrote any."""
    file = home.logs / f"{MERGED_NAME}.log"
    if not file.exists() or file.stat().st_mtime < began:
        return ""
    return "".join(f"{line}\n" for line in last_lines(file, TAIL_LINES))


def stop(settings: Settings) -> bool:
    """False if nothing was running; returns when all has ended."""
    home = Home(settings.home)
    pid = home.running_pid()
    if pid is None:
        return False
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError as error:
        raise Fault(f"process {pid} belongs to another user") from error
    except ProcessLookupError:
        pass  # it has just ended by itself
    if not home.wait_until_free(STOP_SECONDS):
        raise Fault(f"process {pid} has not stopped within {STOP_SECONDS:g} s")
    wait_until(lambda: command_line(pid) == "", LAST_BREATH_SECONDS)
    return True


def status(settings: Settings) -> Status | None:
    """None if nothing runs."""
    home = Home(settings.home)
    pid = home.running_pid()
    if pid is None:
        return None
    state = home.state()
    processes = tuple(
        ProcessStatus(process["name"], process["state"], process["pid"], moment(process["since"]), process["restarts"])
        for process in state.get("processes", [])
    )
    since = moment(state.get("started_at")) or datetime.now(UTC)
    local = json.loads(home.local_file.read_text()) if home.local_file.exists() else {}
    return Status(pid, bool(state.get("ready")), since, processes, local)


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def log_file(settings: Settings, name: str | None) -> Path:
    logs = Home(settings.home).logs
    file = logs / f"{name or MERGED_NAME}.log"
    if file.is_file() and file.parent == logs:
        return file
    known = sorted(file.stem for file in logs.glob("*.log"))
    raise Fault(f"no log of {name or 'anything'} in {logs}" + (f"; there are: {', '.join(known)}" if known else ""))
