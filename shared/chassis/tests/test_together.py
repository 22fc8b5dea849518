"""Jobs that share a process: each under its own name, and none goes on without the others."""

import json
import signal
import subprocess
import sys
from typing import Any

PROGRAM = """
import sys, threading
from chassis import logs, process
from chassis.worker.together import run_together

log = logs.get("tests")

def steady(stop):
    log.info("begun")
    stop.wait()
    log.info("ended")

def failing(stop):
    log.info("begun")
    raise ValueError("broken")

other = {"steady": steady, "failing": failing}[sys.argv[1]]
process.run("shop-workers", lambda stop: run_together({"shop-relay": steady, "shop-consumer": other}, stop),
            log_format="json")
"""


def started(other: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", PROGRAM, other], stderr=subprocess.PIPE, text=True)


def lines(text: str) -> list[tuple[Any, Any]]:
    logged = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    return [(line["process"], line["event"]) for line in logged]


def test_each_job_has_its_own_name_in_the_log_and_a_request_to_stop_ends_all() -> None:
    running = started("steady")
    assert running.stderr
    first = "".join(running.stderr.readline() for _ in range(3))
    running.send_signal(signal.SIGTERM)
    _, rest = running.communicate(timeout=60)

    names = ("shop-relay", "shop-consumer")
    assert running.returncode == 0
    assert {(name, event) for name in names for event in ("begun", "ended")} <= {*lines(first), *lines(rest)}


def test_a_job_that_fails_ends_the_process() -> None:
    running = started("failing")
    _, said = running.communicate(timeout=60)

    assert running.returncode == 1
    assert ("shop-consumer", "job_failed") in lines(said) and ("shop-relay", "ended") in lines(said)
