"""What a fault run kills is a process of its own."""

import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fault_processes import Child


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child("sleeper", ["-c", "import time; time.sleep(60)"], {}, tmp_path / "log")


def test_a_child_is_killed(child: Child) -> None:
    child.start()

    child.kill()

    assert child.process and child.process.returncode() == -signal.SIGKILL


def test_the_pid_of_a_child_that_has_ended_is_left_alone(child: Child, monkeypatch: pytest.MonkeyPatch) -> None:
    child.start()
    child.kill()
    signalled: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: signalled.append(pid))

    child.kill()

    assert signalled == []
