"""The big run in small: the same command, the same judge."""

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).with_name("run.py")
SMALL = ("--intents", "300", "--kills", "10", "--flushes", "2", "--restarts", "1", "--clients", "6", "--accounts", "6")


def test_kills_flushes_restarts_and_timeouts_lose_nothing_and_double_nothing():
    done = subprocess.run(
        [sys.executable, str(RUN), "--quick", "--duplicates-accepted", *SMALL],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, doubled or out of order" in done.stdout
