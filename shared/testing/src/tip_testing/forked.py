"""Processes that are copies of one that has done their imports already."""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tip_testing.waiting import eventually

PROGRAMS = ("accounts.worker", "controls.worker", "identity.worker", "intents.worker", "paper_broker", "stream_gateway")
EXEC_FOR = ("PROMETHEUS_MULTIPROC_DIR", "PYTHONPATH")
"""Variables that count only when Python starts, or when a module of somebody else's is imported."""


def can_fork(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Modules of ours, and scripts that do nothing when they are only imported."""
    program, _ = split(arguments)
    if sys.platform != "linux" or not (program in PROGRAMS or program.endswith(".py")):
        return False
    return not any(environment.get(name) != os.environ.get(name) for name in EXEC_FOR)


def split(arguments: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The program that Python is to run, and the program's own arguments."""
    return (arguments[1], arguments[2:]) if arguments[0] == "-m" else (arguments[0], arguments[1:])


@cache
def _first_server() -> socket.socket:
    """One for each pytest worker, from its first use to the end of the run: what is sent to it names a program."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tip_testing.fork_server", str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


class ForkServer:
    """One for each program and pytest worker."""

    def __init__(self, program: str) -> None:
        self._channel, theirs = socket.socketpair()
        socket.send_fds(_first_server(), [program.encode()], [theirs.fileno()])
        theirs.close()
        self._lines = self._channel.makefile("rw", encoding="utf-8")
        self._lock = threading.Lock()
        atexit.register(self.close)

    def request(self, body: Mapping[str, Any]) -> Any:
        with self._lock:
            self._lines.write(json.dumps(body) + "\n")
            self._lines.flush()
            return json.loads(self._lines.readline())

    def close(self) -> None:
        self._lines.close()
        self._channel.close()


server_of = cache(ForkServer)


class ForkedProcess:
    """What `subprocess.Popen` is for a process that was executed."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        program, own = split(arguments)
        self._server = server_of(program)
        body = {"arguments": list(own), "environment": dict(environment), "log": str(log)}
        self.pid = int(self._server.request(body))

    def poll(self) -> int | None:
        code: int | None = self._server.request({"poll": self.pid})
        return code

    def wait(self, timeout: float) -> int:
        return eventually(lambda: None if (code := self.poll()) is None else (code,), timeout, 0.005)[0]

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)
