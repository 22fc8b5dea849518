import io
import signal
import sys
import threading
import time

import pytest

from tip_local import supervisor as module
from tip_local.errors import Fault
from tip_local.logbook import LogBook
from tip_local.processes import command_line
from tip_local.supervisor import Process, Supervisor


@pytest.fixture
def output():
    return io.StringIO()


@pytest.fixture
def supervisor(folder, output, monkeypatch):
    monkeypatch.setattr(module, "UNPROBED_READY_SECONDS", 0.2)
    made = Supervisor(LogBook(folder / "logs", output))
    yield made
    made.stop()
    made.log.close()


def program(name, code, **more):
    return Process(name, (sys.executable, "-c", code), {}, **more)


def run_until(supervisor, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        supervisor.tick()
        time.sleep(0.02)


SLEEP = "import time; time.sleep(60)"
TALK_TO = """
import signal, sys, time
def say(word):
    with open({file!r}, "a") as file:
        file.write("{name} " + word + chr(10))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(say("down")))
say("up")
time.sleep(60)
"""
PARENT = """
import subprocess, time
with open({file!r}, "w") as file:
    file.write(str(subprocess.Popen(["sleep", "60"]).pid))
time.sleep(60)
"""


def test_a_process_that_dies_is_restarted_at_once_and_it_says_so(supervisor, output):
    supervisor.start([program("intents", SLEEP)])
    first = supervisor.children["intents"].pid
    supervisor.children["intents"].popen.kill()

    run_until(supervisor, lambda: supervisor.children["intents"].pid not in (first, None))

    assert "intents died (killed by SIGKILL), restarting at once" in output.getvalue()


def test_the_wait_between_restarts_grows(supervisor, output):
    supervisor.children["intents"] = module.Child(program("intents", "raise SystemExit(1)"))

    run_until(supervisor, lambda: "restarting in 2 s" in output.getvalue())

    lines = [line.split("| ")[1] for line in output.getvalue().splitlines()]
    waits = ("at once", "in 0.5 s", "in 1 s", "in 2 s")
    assert lines == [f"intents died (exit 1), restarting {wait}" for wait in waits]


def test_after_a_period_of_health_the_next_restart_is_at_once_again(supervisor, output, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_SECONDS", 1.0)
    supervisor.start([program("intents", SLEEP, ready=lambda: True)])
    child = supervisor.children["intents"]
    for _ in range(2):
        first = child.pid
        child.popen.kill()
        run_until(supervisor, lambda pid=first: child.state is module.State.READY and child.pid != pid)
    healthy_from = time.monotonic()
    run_until(supervisor, lambda: time.monotonic() - healthy_from > 1.1)

    child.popen.kill()
    run_until(supervisor, lambda: output.getvalue().count("died") == 3)

    lines = [line.split("restarting ")[1] for line in output.getvalue().splitlines()]
    assert lines[1:] == ["in 0.5 s", "at once"]


def test_a_readiness_check_that_hangs_does_not_hold_up_the_restart_of_another(supervisor):
    released = threading.Event()
    supervisor.start([program("intents", SLEEP, ready=lambda: True)])
    supervisor.children["web"] = module.Child(program("web", SLEEP, ready=lambda: released.wait(60)))
    run_until(supervisor, lambda: supervisor.children["web"].pid is not None)
    supervisor.tick()
    first = supervisor.children["intents"].pid

    supervisor.children["intents"].popen.kill()
    run_until(supervisor, lambda: supervisor.children["intents"].pid not in (first, None))

    assert supervisor.children["web"].state is module.State.STARTING
    released.set()
    run_until(supervisor, lambda: supervisor.children["web"].state is module.State.READY)


def test_a_configuration_error_stops_the_start(supervisor, output):
    with pytest.raises(Fault, match=r"^web refuses its configuration: PORT is missing$"):
        supervisor.start([program("web", "import sys; print('PORT is missing'); sys.exit(2)", ready=lambda: False)])

    supervisor.stop()
    supervisor.log.close()
    assert "web                 | PORT is missing" in output.getvalue()


def test_exit_code_2_of_a_process_that_was_ready_is_a_death_like_any_other(supervisor, output):
    late = "import time; time.sleep(0.6); raise SystemExit(2)"
    supervisor.start([program("web", late, ready=lambda: True)])

    run_until(supervisor, lambda: "web died (exit 2), restarting" in output.getvalue())
    assert supervisor.children["web"].restarts <= 1


def test_one_that_never_starts_is_given_up_with_its_last_words(supervisor, monkeypatch):
    monkeypatch.setattr(module, "BACKOFF_FIRST_SECONDS", 0.01)

    with pytest.raises(Fault, match=r"^web does not start \(exit 1, 5 times\): ValueError: no such thing$"):
        supervisor.start([program("web", "raise ValueError('no such thing')", ready=lambda: False)])


def test_what_never_gets_ready_is_named(supervisor):
    with pytest.raises(Fault, match=r"not ready within 0.5 s: web$"):
        supervisor.start([program("web", SLEEP, ready=lambda: False)], seconds=0.5)


def test_they_start_in_order_and_stop_in_reverse(supervisor, folder):
    said = folder / "said"  # by the processes themselves: what they print reaches the log by a thread for each

    def talking(name, *after):
        code = TALK_TO.format(file=str(said), name=name)
        return program(name, code, after=after, ready=lambda: said.exists() and f"{name} up" in said.read_text())

    supervisor.start([talking("third", "second"), talking("second", "first"), talking("first")])

    supervisor.stop()

    words = said.read_text().splitlines()
    assert words == ["first up", "second up", "third up", "third down", "second down", "first down"]


def test_one_that_ignores_the_request_to_stop_is_killed(supervisor, output, folder, monkeypatch):
    monkeypatch.setattr(module, "STOP_SECONDS", 0.5)
    file = folder / "deaf"
    code = f"import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); pathlib.Path({str(file)!r}).touch()"
    supervisor.start([program("deaf", f"{code}; time.sleep(60)", ready=file.exists)])
    pid = supervisor.children["deaf"].pid

    supervisor.stop()

    assert command_line(pid) == ""
    assert "deaf did not stop within 0.5 s, killed" in output.getvalue()


def test_what_a_process_had_started_itself_ends_with_it(supervisor, folder):
    file = folder / "pid"
    started = lambda: file.exists() and file.read_text() != ""  # noqa: E731
    supervisor.start([program("parent", PARENT.format(file=str(file)), ready=started)])
    grandchild = int(file.read_text())

    supervisor.children["parent"].popen.send_signal(signal.SIGKILL)
    run_until(supervisor, lambda: command_line(grandchild) == "")
    assert command_line(grandchild) == ""


def test_each_start_begins_a_new_log_and_keeps_the_last(folder):
    for line in ("earlier", "now"):
        log = LogBook(folder / "logs", None)
        log.write("web", line)
        log.close()

    assert (folder / "logs" / "web.log").read_text() == "now\n"
    assert (folder / "logs" / "web.log.1").read_text() == "earlier\n"
