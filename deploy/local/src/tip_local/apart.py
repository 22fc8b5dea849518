"""Runs a function in a process of its own: what it imports is in memory no longer than it runs."""

import json
import os
import signal
import traceback
from collections.abc import Callable
from select import select
from typing import Any, NoReturn, TypeVar

from tip_local.copies import CAN_COPY
from tip_local.errors import Fault

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTICED_S = 0.2
"""How late a stop may be noticed: a signal that another thread receives does not interrupt what this one waits for."""

Given = TypeVar("Given")
Result = TypeVar("Result")


class Failed(Exception):
    """What the function raised, as text: an error of a library need not survive the way from one process to another."""


def apart(work: Callable[[Given], Result], given: Given) -> Result:
    """What it returns, which JSON can hold. Its Fault is raised, and everything else as Failed."""
    if not CAN_COPY:
        return work(given)
    reads, writes = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)  # what a handler raises inside of `fork` is lost
    pid = os.fork()
    if pid == 0:
        _answer(writes, work, given)
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(writes)
        with os.fdopen(reads, "rb") as pipe:
            while not select([pipe], [], [], NOTICED_S)[0]:
                pass
            answer = pipe.read()
    except BaseException:
        os.kill(pid, signal.SIGKILL)  # a stop was requested: nobody waits for it any more
        raise
    finally:
        os.waitpid(pid, 0)
    result: Result = _result(answer)
    return result


def _result(answer: bytes) -> Any:
    if not answer:
        raise Failed("it was ended")
    said = json.loads(answer)
    if "fault" in said:
        raise Fault(said["fault"])
    if "failed" in said:
        raise Failed(said["failed"])
    return said["result"]


def _answer(writes: int, work: Callable[[Given], object], given: Given) -> NoReturn:
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)  # the parent ends us
    try:
        answer = json.dumps({"result": work(given)})
    except Fault as fault:
        answer = json.dumps({"fault": str(fault)})
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        answer = json.dumps({"failed": f"{error}\n{traceback.format_exc()}"})
    with os.fdopen(writes, "w") as pipe:
        pipe.write(answer)
    os._exit(0)
