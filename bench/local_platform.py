"""A whole platform of its own, as `make up` runs it, in a home that is removed afterwards."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tip_local.home import Home
from tip_local.processes import free_port

PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")
UNLIMITED = {"RATE_LIMIT_PER_MINUTE": "1000000"}


@dataclass(frozen=True)
class Platform:
    home: Home
    environment: dict[str, str]

    def tip(self, command: str) -> None:
        tip = str(Path(sys.executable).parent / "tip")
        subprocess.run([tip, command], env=self.environment, check=True, stdout=subprocess.DEVNULL)

    @property
    def local(self) -> dict[str, Any]:
        """Addresses, and the credentials of the demo organizations."""
        return json.loads(self.home.local_file.read_text())  # type: ignore[no-any-return]

    def processes(self) -> dict[str, dict[str, Any]]:
        return {process["name"]: process for process in self.home.state().get("processes", [])}


@contextmanager
def platform(**environment: str) -> Iterator[Platform]:
    home = Path(tempfile.mkdtemp(prefix="tip-bench-"))
    ports = {name: str(free_port()) for name in PORTS}
    made = Platform(Home(home), {**os.environ, **ports, "TIP_HOME": str(home), **UNLIMITED, **environment})
    made.tip("start")
    try:
        yield made
    finally:
        made.tip("stop")
        shutil.rmtree(home, ignore_errors=True)
