"""Two processes serve one port: a kill of one is not felt, and a kill of both makes callers wait, not fail."""

import os
import signal
import socket
import sys
import threading

import pytest

from tip_local.errors import Fault
from tip_local.logbook import LogBook
from tip_local.process_table import web_workers
from tip_local.supervisor import Process, Supervisor
from tip_local.up import open_front
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually

SERVE = """
import os, socket, sys
front = socket.socket(fileno=int(sys.argv[1]))
while True:
    caller, _ = front.accept()
    with caller:
        caller.sendall(str(os.getpid()).encode())
"""


def who_answers(port):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as call:
        return int(call.recv(100))


@pytest.fixture
def port():
    return reserved_port()


@pytest.fixture
def pair(folder, port):
    """Two servers on the port, whose pids are given, restarted by a supervisor that ticks in the main thread."""
    front = open_front(port)
    supervisor = Supervisor(LogBook(folder / "logs", None))
    argv = (sys.executable, "-c", SERVE, str(front.fileno()))
    supervisor.start(
        [Process(name, argv, {}, ready=lambda: True, descriptors=(front.fileno(),)) for name in ("web", "web-2")]
    )
    yield supervisor
    front.close()
    supervisor.stop()
    supervisor.log.close()


def pids(supervisor):
    return {child.pid for child in supervisor.children.values()}


def test_a_caller_is_answered_by_the_other_when_one_is_killed(pair, port):
    victim = pair.children["web"].pid

    os.kill(victim, signal.SIGKILL)
    pair.children["web"].popen.wait()

    assert who_answers(port) == pair.children["web-2"].pid


def test_a_caller_who_comes_while_none_runs_is_answered_after_the_restart(pair, port):
    killed = pids(pair)
    for child in pair.children.values():
        child.popen.kill()
        child.popen.wait()
    answered = []
    caller = threading.Thread(target=lambda: answered.append(who_answers(port)))
    caller.start()

    def tick():
        pair.tick()
        return bool(answered)

    eventually(tick)
    caller.join()
    assert answered[0] in pids(pair) - killed


def test_a_front_port_that_somebody_has_is_named(port):
    with open_front(port), pytest.raises(Fault, match=rf"^port {port} cannot be listened on: Address already in use"):
        open_front(port)


@pytest.mark.parametrize(("wanted", "each"), [("1", "1"), ("2", "1"), ("5", "3"), ("many", "many"), ("", "")])
def test_the_workers_wished_for_are_shared_by_the_two(wanted, each):
    assert web_workers(wanted) == each
