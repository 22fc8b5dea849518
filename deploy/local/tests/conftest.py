import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tip_local.home import Home
from tip_testing.ports import reserved_port
from tip_testing.servers_plugin import new_directory
from tip_testing.waiting import eventually

PLATFORM = """
import sys
from tip_local.errors import Fault
from tip_local.probes import listens
from tip_local.process_table import ProcessSpec
from tip_local.settings import Settings
from tip_local.up import up

web = ProcessSpec(
    name="web",
    needs=(),
    command=lambda stack: (sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(stack.settings.port)),
    ready=lambda stack: listens(stack.settings.port),
    port_variables=("TIP_PORT",),
)
worker = ProcessSpec(name="worker", needs=(), command=lambda stack: ("sleep", "600"), yields=True)
try:
    up(Settings.from_env(), sys.stdout, table=(web, worker), steps=())
except Fault as fault:
    sys.exit(f"tip: {fault}")
"""


PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")


@pytest.fixture
def folder() -> Iterator[Path]:
    made = new_directory("tip-")
    yield made
    shutil.rmtree(made, ignore_errors=True)


@dataclass
class Platform:
    """Embedded datastores, one small web server and a worker that yields, run by the code behind `tip up`."""

    home: Home
    ports: dict[str, int] = field(default_factory=lambda: {name: reserved_port() for name in PORTS})
    """Of every server whose port is fixed, so that a platform with the default ports may run beside it."""
    process: subprocess.Popen[str] | None = None

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
        return {**kept, "TIP_HOME": str(self.home.path), **self._ports(), **more}

    def _ports(self) -> dict[str, str]:
        return {name: str(port) for name, port in self.ports.items()}

    def begin(self, **more: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLATFORM],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self, **more: str) -> None:
        self.begin(**more)
        eventually(lambda: self.is_ready() or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()

    def is_ready(self) -> bool:
        state = self.home.state()
        return state.get("pid") == self.process.pid and state["ready"]

    def outcome(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def interrupt(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        return self.outcome()

    def pids(self) -> dict[str, int]:
        return {process["name"]: process["pid"] for process in self.home.state()["processes"]}


@pytest.fixture(scope="module")
def used_home() -> Iterator[Home]:
    """One for many tests, each of which finds it as the last one left it."""
    made = new_directory("tip-")
    yield Home(made / "home")
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def platform(used_home: Home) -> Iterator[Platform]:
    made = Platform(used_home)
    yield made
    if made.process:
        if made.process.poll() is None:
            made.process.terminate()
        made.process.communicate(timeout=60)
