"""Every worker process starts the same way: `python -m <service>.worker <job> ...`."""

import sys
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

from chassis import process
from chassis.config import EnvironmentConfig, setting
from chassis.worker.main import Job, Prepared, main


@dataclass(frozen=True)
class Settings(EnvironmentConfig):
    color: str = setting("TEST_COLOR", "any color")
    log_format: str = setting("LOG_FORMAT", "json or text", default="json")
    log_level: str = setting("LOG_LEVEL", "the least level that is logged", default="debug")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a process would have been run with."""
    seen: list[Any] = []
    monkeypatch.setattr(process, "run", lambda *arguments, **options: seen.append((arguments, options)))
    return seen


def loop(_stop: Event) -> None: ...


def start(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[tuple[str, str]]:
    """Start what the command line names; the colors and names it was prepared with."""
    prepared: list[tuple[str, str]] = []

    def prepare(config: Settings, name: str) -> Prepared:
        prepared.append((config.color, name))
        return Prepared(loop)

    monkeypatch.setenv("TEST_COLOR", "blue")
    monkeypatch.setattr(sys, "argv", ["worker.py", *words])
    main("shop", {"relay": Job(Settings, prepare), "scheduler": Job(Settings, prepare)})
    return prepared


def test_a_process_is_named_after_its_service_and_its_job(monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> None:
    assert start(monkeypatch, "scheduler") == [("blue", "shop-scheduler")]
    assert started == [(("shop-scheduler", loop), {"log_format": "json", "level": "debug", "ready": None})]


def test_jobs_that_share_a_process_are_prepared_under_their_own_names(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    assert start(monkeypatch, "relay", "scheduler") == [("blue", "shop-relay"), ("blue", "shop-scheduler")]
    [((name, _), _)] = started
    assert name == "shop-workers"


@pytest.mark.parametrize("words", [(), ("listen",), ("relay", "relay")], ids=["none", "unknown", "one twice"])
def test_an_unknown_job_ends_with_2_and_the_list_of_jobs(
    monkeypatch: pytest.MonkeyPatch, started: list[Any], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        start(monkeypatch, *words)

    assert (ended.value.code, started) == (2, [])
    assert capsys.readouterr().err == "usage: python -m shop.worker {relay|scheduler} ...\n"
