"""Runs the kit and keeps what became of each fact."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from tip_testing.broker_check.credentials import without_secrets
from tip_testing.broker_check.errors import KitFailed
from tip_testing.broker_check.markets import CheckedMarket
from tip_testing.broker_check.selection import ORDER
from tip_testing.broker_conformance.orders import PROTOCOL

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
FACT_SECONDS = 180
LONGEST_DETAIL = 300
_LATER = len(ORDER)

ReasonToSkip = Callable[[str, str, str | None], str | None]
"""Of a fact, the claim that it proves, and the order kind that it is about."""


class FactResult(NamedTuple):
    fact: str
    claim: str
    result: str
    detail: str = ""


class CheckPlugin:
    def __init__(self, market: CheckedMarket, reason_to_skip: ReasonToSkip, claims: Sequence[str]) -> None:
        self._market, self._reason_to_skip, self._claims = market, reason_to_skip, claims
        self._claim_of: dict[str, str] = {}
        self.results: dict[str, FactResult] = {}

    @pytest.fixture
    def market(self) -> CheckedMarket:
        return self._market

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Facts about claims come first, streams before all: a fact that listens needs them."""
        self._claim_of = {item.nodeid: _claim(item) for item in items}
        chosen = [item for item in items if not self._claims or self._claim_of[item.nodeid] in self._claims]
        items[:] = sorted(chosen, key=lambda item: _place(self._claim_of[item.nodeid]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: Any) -> None:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        reason = self._reason_to_skip(item.originalname, self._claim_of[item.nodeid], parameters.get("kind"))
        if reason:
            pytest.skip(reason)
        if "listener" in item.fixturenames and self._fails("streams"):
            pytest.skip("its stream is not kept")

    def _fails(self, claim: str) -> bool:
        return any(found.claim == claim and found.result == FAILED for found in self.results.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != PASSED:
            claim = self._claim_of[report.nodeid]
            self.results[report.nodeid] = FactResult(_title(report), claim, report.outcome, self._shown(report))

    def _shown(self, report: pytest.TestReport) -> str:
        """Secrets are hidden first: of what is cut or joined, no part would be recognized."""
        return " ".join(without_secrets(_detail(report), self._market.secret).split())[:LONGEST_DETAIL]


def _claim(item: Any) -> str:
    claim: str = getattr(item.function, "proves", PROTOCOL)
    return claim


def _place(claim: str) -> int:
    return ORDER.index(claim) if claim in ORDER else _LATER


def _title(report: pytest.TestReport) -> str:
    name = report.nodeid.rpartition("::")[2]
    words, _, parameters = name.partition("[")
    title = words.removeprefix("test_").replace("_", " ")
    return f"{title} ({parameters.removesuffix(']').replace('-', ' ')})" if parameters else title


def _detail(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    if not report.failed:
        return ""
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr)


def run_kit(plugin: CheckPlugin) -> list[FactResult]:
    """In a folder of its own: no configuration and no plug-in of the caller's counts, and nothing is left behind."""
    with tempfile.TemporaryDirectory(prefix="tip-check-") as folder:
        settings = Path(folder, "pytest.ini")
        settings.write_text(f"[pytest]\ntimeout = {FACT_SECONDS}\nfilterwarnings = ignore\n")
        given = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HYPOTHESIS_STORAGE_DIRECTORY": folder}
        given |= {"PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}
        words = ["-c", str(settings), "--rootdir", folder, "--import-mode=importlib"]
        words += ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "pytest_timeout", "--noconftest"]
        with patch.dict(os.environ, given):
            code = pytest.main([*words, str(Path(__file__).with_name("suite.py"))], plugins=[plugin])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not plugin.results:
        raise KitFailed(f"the kit did not run to its end (pytest: {code})")
    return list(plugin.results.values())
