"""The configuration is what the README says it is, and a wrong one is a clear line."""

import subprocess
import sys
from pathlib import Path

import pytest

from chassis.config import BadConfiguration, ServiceConfig
from stream_gateway.config import Config

README = Path(__file__).parents[1] / "README.md"
REQUIRED = {"DATABASE_URL": "postgresql://x", "REDIS_URL": "redis://x", "CURSOR_KEY": "for-tests-only"}


def test_the_readme_has_every_variable_with_its_default() -> None:
    common = {variable for variable, _, _ in ServiceConfig.documentation()}
    rows = [line.split(" | ") for line in README.read_text().splitlines() if line.startswith("| `")]
    documented = {
        variable.strip("`| "): default
        for names, defaults, *_ in (row for row in rows if len(row) == 3)
        for variable, default in zip(names.split(", "), defaults.split(", "), strict=False)
    }

    for variable, default, _ in Config.documentation():
        if variable not in common:
            assert documented.get(variable, "not there").lower() == default.lower().removesuffix(".0"), variable


@pytest.mark.parametrize("variable", ["HEARTBEAT_SECONDS", "STUCK_SECONDS", "BUFFER_EVENTS", "STREAMS_PER_PRINCIPAL"])
def test_what_cannot_work_is_refused_by_name(variable: str) -> None:
    with pytest.raises(BadConfiguration, match=variable):
        Config.from_env({**REQUIRED, variable: "0"})


def test_without_a_database_it_stops_with_one_line() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "stream_gateway"], env={}, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 2
    assert ended.stderr.splitlines()[0].startswith("stream-gateway: configuration: DATABASE_URL: is required")
