"""Starts programs as copies of a process that has imported what they import: `python -m tip_local.nursery DESCRIPTOR`.

Copies share the memory of what was imported, and need not import it anew. No secret passes through here, so that none
is in the memory of a copy but its own: each reads its environment itself, from a pipe.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
from importlib.util import find_spec
from typing import Any, NoReturn

from chassis.services import WEB_SERVICES
from tip_local.child import be_nice, die_with

PROGRAMS = ("accounts.worker", "controls.worker", "identity.worker", "intents.worker")
IMPORTED = (
    *(f"{service}.app" for service in WEB_SERVICES),
    *("gunicorn.app.wsgiapp", "chassis.gunicorn_worker"),
    *("console.app", "paper_broker.app"),
)
"""Besides. Nothing of the stream gateway: gRPC must not be forked, so a copy imports it by itself."""
LONGEST_REQUEST = 65_536
MOST_DESCRIPTORS = 8
PR_SET_NAME = 15


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor, which ends us
    for name in (*PROGRAMS, *IMPORTED):
        _load(name)
    if threading.active_count() > 1:
        sys.exit("a program starts a thread when it is imported, so it cannot be copied")
    gc.collect()
    gc.freeze()  # what is shared with the copies is not written to by their collectors
    with socket.socket(fileno=descriptor) as channel:
        request, descriptors = serve(channel)
    become(request, descriptors)


def _load(program: str) -> None:
    """Import what it imports, if it is installed. What `python -m` runs is to run anew in each copy."""
    spec = find_spec(program.partition(".")[0]) and find_spec(program)
    if spec is None:
        return
    importlib.import_module(program)
    if program in PROGRAMS:
        del sys.modules[program]


def serve(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Serve requests to copy and to poll until the other side ends; returns in the copies alone."""
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, LONGEST_REQUEST, MOST_DESCRIPTORS)
        if not message:
            os._exit(0)  # and the copies with us: see `die_with`
        request = json.loads(message)
        if "poll" in request:
            answer = _exit_code(request["poll"])
        elif (answer := os.fork()) == 0:
            return request, descriptors
        for received in descriptors:
            os.close(received)
        channel.send(json.dumps(answer).encode())


def _exit_code(pid: int) -> int | None:
    try:
        found, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:  # a copy of the nursery before this one: it was killed with that
        return -signal.SIGKILL
    return os.waitstatus_to_exitcode(status) if found else None


def become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Run the program as Python would, with exactly the environment that comes through the pipe."""
    output, environment, *shared = descriptors
    os.setsid()  # Ctrl-C in the terminal is for the supervisor alone
    die_with(os.getppid(), request["death_signal"])
    be_nice(request["niceness"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _redirect(output)
    with os.fdopen(environment, "rb") as pipe:
        os.environ.clear()
        os.environ.update(json.load(pipe))
    for received, number in zip(shared, request["descriptors"], strict=True):
        _move(received, number)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, request["name"].encode()[:15])
    program, *arguments = request["arguments"]
    sys.argv = [program, *arguments]
    runpy.run_module(program, run_name="__main__", alter_sys=True)
    sys.exit(0)


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, standard)
    os.close(nothing)
    os.close(output)


def _move(received: int, number: int) -> None:
    if received != number:
        os.dup2(received, number)
        os.close(received)
    os.set_inheritable(number, True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
