"""Starts copies of programs without importing them anew: `python -m tip_testing.fork_server DESCRIPTOR`.

Most of the processor time of a process under test goes into its imports. The first server imports what almost all
programs of ours import, and forks a server for each program. That one imports the program and nothing else, and forks
for each request a copy, which has what `python -m MODULE` or `python SCRIPT.py` would have, and of others' modules only
those in `COMMON`.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import NoReturn

from tip_local.child import die_with


@dataclass(frozen=True)
class ForkRequest:
    arguments: list[str]
    environment: dict[str, str]
    log: str


COMMON = ("chassis.authentication", "chassis.feed", "chassis.outbox.relay", "chassis.worker.main")


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends us
    for name in COMMON:
        importlib.import_module(name)
    with socket.socket(fileno=descriptor) as channel:
        program, theirs = serve_programs(channel)
    die_with(os.getppid(), signal.SIGKILL)
    serve_copies(program, theirs)


def serve_programs(channel: socket.socket) -> tuple[str, int]:
    """Forks a server for each program named, until the other side ends; returns in these alone."""
    while True:
        program, descriptors, _, _ = socket.recv_fds(channel, 4096, 1)
        if not program:
            os._exit(0)  # and the servers of the programs with us
        if os.fork() == 0:
            return program.decode(), descriptors[0]
        os.close(descriptors[0])


def serve_copies(program: str, descriptor: int) -> None:
    _load(program)
    if threading.active_count() > 1:
        sys.exit(f"{program} starts a thread when it is imported, so it cannot be forked")
    gc.freeze()  # what is shared with the copies is not written to
    channel = socket.socket(fileno=descriptor)
    request = serve(channel)
    channel.close()
    become(program, request)


def _load(program: str) -> None:
    """Import what it imports, and leave no trace of the program itself."""
    if program.endswith(".py"):
        spec = spec_from_file_location("__loaded__", program)
        assert spec and spec.loader
        spec.loader.exec_module(module_from_spec(spec))
    else:
        importlib.import_module(_code_of(program))
        del sys.modules[_code_of(program)]


def _code_of(module: str) -> str:
    """Where the code is that `python -m` runs."""
    spec = find_spec(module)
    return f"{module}.__main__" if spec and spec.submodule_search_locations else module


def serve(channel: socket.socket) -> ForkRequest:
    """Serves requests to fork and to poll until the other side ends; returns in the copies alone."""
    ended: dict[int, int] = {}
    with channel.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            received = json.loads(line)
            if "poll" in received:
                answer = _exit_code(received["poll"], ended)
            elif (answer := os.fork()) == 0:
                return ForkRequest(**received)
            lines.write(json.dumps(answer) + "\n")
            lines.flush()
    os._exit(0)  # and the copies with us: see `die_with`


def _exit_code(pid: int, ended: dict[int, int]) -> int | None:
    """None while it runs. It is reaped only here, so that its pid is not given to another process before."""
    if pid not in ended:
        found, status = os.waitpid(pid, os.WNOHANG)
        if not found:
            return None
        ended[pid] = os.waitstatus_to_exitcode(status)
    return ended[pid]


def become(program: str, request: ForkRequest) -> NoReturn:
    """Run the program as Python would, with exactly this environment."""
    die_with(os.getppid(), signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request.environment)
    _redirect(request.log)
    importlib.reload(importlib.import_module("chassis.crashpoints"))  # it reads its variables when it is imported
    sys.argv = [program, *request.arguments]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    sys.exit(0)


def _redirect(log: str) -> None:
    nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for source, standard in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(source, standard)
    os.close(nothing)
    os.close(file)


if __name__ == "__main__":
    main(int(sys.argv[1]))
