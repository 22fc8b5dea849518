"""The big run in small: the same command, the same judge."""

import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
SECONDS = 600


@pytest.mark.timeout(SECONDS + 60)
def test_under_kills_pauses_and_a_bad_line_nothing_is_lost_doubled_out_of_order_or_untrue():
    done = subprocess.run(
        [sys.executable, str(RUN), "--size", "small", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, doubled, out of order or untrue" in done.stdout
