"""A worker process ends when it is requested to, at whatever moment that is."""

import subprocess
import sys

# Requested while it holds the lock of `stop` itself, as every `stop.wait()` does for a moment.
REQUESTED_AT_THE_WORST_MOMENT = """
import os, signal
from chassis import process

def loop(stop):
    with stop._cond:
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(1000):  # the handler runs somewhere in here
            pass
    stop.wait()

process.run("worker", loop, log_format="json")
"""


def test_a_request_to_stop_counts_even_while_the_process_begins_to_wait() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", REQUESTED_AT_THE_WORST_MOMENT], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, "stopped" in ended.stderr) == (0, True)
