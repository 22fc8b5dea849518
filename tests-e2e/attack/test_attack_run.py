"""The attack in small: the same command and the same judge, one test for each part, on the platform of the journeys."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).with_name("run.py")
SECONDS = 900
PARTS = ("matrix", "fuzz", "tokens", "sockets", "streams", "fairness", "secrets")

pytestmark = pytest.mark.timeout(SECONDS + 60)


@pytest.fixture(scope="module")
def attacked(stack: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[dict[str, Any]]]:
    """What the run printed, and what it found."""
    found = tmp_path_factory.mktemp("attack") / "findings.json"
    command = [sys.executable, str(RUN), "--running", "--size", "small", "--seed", "7", "--findings", str(found)]
    done = subprocess.run(
        [*stack.operator, *command],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert found.exists(), done.stdout + done.stderr
    return done.stdout, json.loads(found.read_text())


@pytest.mark.parametrize("part", PARTS)
def test_nothing_gives_way_to(part: str, attacked: tuple[str, list[dict[str, Any]]]) -> None:
    printed, findings = attacked

    assert [finding for finding in findings if finding["part"] == part] == []
    assert f"  {part}: no findings" in printed
