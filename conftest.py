"""Fixtures of every suite: real Postgres, real Valkey, a migrated database per module."""

import gc
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tip_testing.kept import end_kept

pytest_plugins = ["tip_testing.platform_plugin"]

# How long something takes says more about the machine than about the product.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


def pytest_collection_finish() -> None:
    """What is there now stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def group_of(nodeid: str) -> str:
    """One worker runs all tests of a file; and one all for which a whole platform is started: journeys and attack,
    another those of the Python SDK, another those of `tip`, and another those of the console."""
    file = nodeid.split("::", maxsplit=1)[0]
    if file.endswith("/test_broker_check.py"):
        return nodeid  # each waits for processes of its own, and would keep the last worker waiting alone
    if file.startswith("clients/python/tests/test_live"):
        return "sdk"
    if file.startswith("clients/tests/test_live"):
        return "tip"
    if file.startswith("services/console/tests/"):
        return "console"
    return "journeys" if file.startswith(("tests-e2e/test_", "tests-e2e/attack/test_attack_run")) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    class OneWorkerPerGroup(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return OneWorkerPerGroup(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    try:
        yield
    finally:
        if nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid):
            end_kept(item.config)
