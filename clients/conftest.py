"""One whole platform for the tests of the SDK and of `tip`: the one TIP_LOCAL_JSON describes, or one started here."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tip_testing.kept import kept
from tip_testing.ports import reserved_port
from tip_testing.servers_plugin import new_directory

sys.path.insert(0, str(Path(__file__).parent / "python" / "tests"))
from sdk_platform import Platform

PORTS = ("TIP_PORT", "TIP_STREAM_PORT", "TIP_EVENTS_PORT", "TIP_PAPER_BROKER_PORT")
UNLIMITED = {"RATE_LIMIT_PER_MINUTE": "1000000000", "BACKLOG_MAX_AGE_SECONDS": "1000000000", "QUOTE_WAIT_SECONDS": "5"}

LOGINS = {"LOGIN_RATE_LIMIT_PER_MINUTE": "100000", "USER_TOKEN_LIFETIME_SECONDS": "4"}  # no secret - seconds # nosec B105
"""So short that a stream outlives tokens within a test; the demo data's own are long."""


@pytest.fixture(scope="module")
def whole_platform(pytestconfig: pytest.Config) -> Platform:
    return kept(pytestconfig, _platform)


@contextmanager
def _platform() -> Iterator[Platform]:
    if described := os.environ.get("TIP_LOCAL_JSON"):
        yield Platform(json.loads(Path(described).read_text()), Path(described).parent)
        return
    home = new_directory("tip-sdk-")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ports = {name: str(reserved_port()) for name in PORTS}
    environment = {**os.environ, **ports, **UNLIMITED, **LOGINS, "TIP_HOME": str(home), "PATH": path}
    subprocess.run(["tip", "start"], env=environment, check=True, stdout=subprocess.DEVNULL)
    yield Platform(json.loads((home / "local.json").read_text()), home)
    subprocess.run(["tip", "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(home, ignore_errors=True)
