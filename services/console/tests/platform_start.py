"""Whole platforms for tests, as `make start` runs them, and scripts that run with their secrets."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tip_testing.ports import reserved_port

PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")


def environment(home: Path, **more: str) -> dict[str, str]:
    """Of a platform in that home, on ports of its own."""
    ports = {name: str(reserved_port()) for name in PORTS}
    return {**os.environ, **ports, "TIP_HOME": str(home), "LOGIN_RATE_LIMIT_PER_MINUTE": "10000", **more}


@contextmanager
def started(variables: Mapping[str, str]) -> Iterator[None]:
    tip = str(Path(sys.executable).with_name("tip"))
    subprocess.run([tip, "start"], env=variables, check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([tip, "stop"], env=variables, check=True, stdout=subprocess.DEVNULL)


def run_script(script: str, variables: Mapping[str, str], given: str = "") -> str:
    """Beside the platform; what it prints."""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=variables, check=True, input=given, stdout=subprocess.PIPE, text=True)
    return done.stdout
