"""Processes under test, executed or forked: both are what `python -m` would have started."""

import signal
import sys
from pathlib import Path

import pytest

from tip_testing.forked import ForkedProcess
from tip_testing.ports import reserved_port
from tip_testing.processes import Running, running, start
from tip_testing.waiting import eventually

BROKER = ("-m", "paper_broker")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="on other systems every process is executed")


def settings() -> dict[str, str]:
    return {"PAPER_BROKER_PORT": str(reserved_port()), "PAPER_BROKER_DATA": ":memory:", "PAPER_BROKER_PRICES": "fixed"}


def is_up(process: Running) -> bool:
    return "paper_broker_started" in process.output()


@on_linux
def test_a_forked_process_has_its_own_settings_its_own_log_and_ends_by_the_signal_it_is_sent(tmp_path: Path) -> None:
    first, second = ({**settings(), "PAPER_BROKER_SEED": seed} for seed in ("1", "2"))
    with (
        running(*BROKER, environment=first, log=tmp_path / "1.log", ready=is_up) as process,
        running(*BROKER, environment=second, log=tmp_path / "2.log", ready=is_up) as other,
    ):
        assert isinstance(process.process, ForkedProcess) and process.pid != other.pid
        assert first["PAPER_BROKER_PORT"] in process.output() and first["PAPER_BROKER_PORT"] not in other.output()
        assert process.end(signal.SIGTERM) == 0
        assert other.returncode() is None

        other.freeze()
        eventually(other.is_frozen)
        assert other.end(signal.SIGKILL) == -signal.SIGKILL


@on_linux
def test_the_exit_code_of_a_forked_process_is_that_of_an_executed_one(tmp_path: Path) -> None:
    wrong = {**settings(), "PAPER_BROKER_PORT": "eighty"}
    forked, executed = start(*BROKER, environment=wrong), start(*BROKER, environment=wrong, before=("env",))

    assert (forked.wait(), executed.wait()) == (2, 2)
    assert forked.output() == executed.output() != ""


def test_a_process_that_ends_before_it_is_ready_says_why() -> None:
    with pytest.raises(AssertionError, match="PAPER_BROKER_PORT"):
        start(*BROKER, environment={**settings(), "PAPER_BROKER_PORT": "eighty"}, ready=is_up)
