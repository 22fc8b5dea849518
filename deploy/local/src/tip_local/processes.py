"""Starting, recognising and ending operating system processes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")
POLL_SECONDS = 0.02


def with_parent_death_signal(
    argv: list[str], death_signal: signal.Signals, identity: str = "same", niceness: int = 0
) -> list[str]:
    """The command that runs `argv` so that it gets `death_signal` when this process ends, however it ends.

    Linux sends that signal when the *thread* that started the child ends: start children from the main thread.
    """
    options = [str(os.getpid()), str(int(death_signal)), identity, str(niceness)]
    return [sys.executable, "-I", "-S", str(CHILD), *options, *argv]


@cache
def unprivileged_identity() -> str:
    """The least intrusive way for a child not to be root: `same` unless we are root ourselves."""
    if os.geteuid() != 0:
        return "same"
    probe = with_parent_death_signal(["true"], signal.SIGKILL, "namespace")
    allowed = subprocess.run(probe, check=False, capture_output=True).returncode == 0
    return "namespace" if allowed else "nobody"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Raises PermissionError if it is not for this user to have."""
    with socket.socket() as probe:
        # As servers do: a connection of the last run still in TIME_WAIT is not in the way.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            raise
        except OSError:
            return False
    with socket.socket() as probe:  # macOS lets us bind beside a server that listens on all addresses
        probe.settimeout(1)
        return probe.connect_ex((host, port)) != 0


def command_line(pid: int) -> str:
    """What the process was started with; empty if it has ended, also while nobody has collected its exit code."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    found = subprocess.run(["ps", "-o", "stat=,command=", "-p", str(pid)], check=False, capture_output=True, text=True)
    state, _, command = found.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else command.strip()


def pids_working_in(directory: Path) -> list[int]:
    """Processes whose working directory it is, where the system shows them (Linux)."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has just ended, or is not ours to look at
            if entry.readlink() == directory:
                found.append(int(entry.parent.name))
    return found


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def end_leftover(pid: int, belongs: Callable[[str], bool], polite: signal.Signals, seconds: float = 10.0) -> bool:
    """End a process of an earlier run, if the number still means that process. True if there was one."""

    def ended() -> bool:
        return not belongs(command_line(pid))

    if pid <= 1 or ended():
        return False
    for chosen in (polite, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(pid, chosen)
        if wait_until(ended, seconds):
            break
    return True
