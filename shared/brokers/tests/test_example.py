"""The example as its author would check it: installed beside the platform, with its own simulator."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIP = Path(sys.executable).with_name("tip")
PACKAGE = Path(__file__).parents[1] / "example"


@pytest.mark.timeout(400)
def test_the_example_keeps_all_that_it_claims(tmp_path: Path) -> None:
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path)]
    subprocess.run([sys.executable, *install, str(PACKAGE)], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    command = [TIP, "broker", "check", "example"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "kept: kinds (Market (DAY); Limit (DAY, GTC))" in done.stdout
    assert "not checked: calls_per_minute (600)" in done.stdout
    assert done.stdout.endswith("Claimed and not kept: nothing.\n")
