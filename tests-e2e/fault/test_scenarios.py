"""Each scenario as a test. One platform for all: `run_scenario.py NAME` plays one by itself."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fault_scenario import Stage, in_order, stage
from scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(600)  # the first one starts the platform
NAMES = [scenario.name for scenario in in_order(SCENARIOS.values())]


@pytest.fixture(scope="module")
def platform(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """For the scenarios that were selected; the others are not played."""
    calls = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    chosen = [SCENARIOS[call.params["name"]] for call in calls if call]
    with stage(chosen) as made:
        yield made


@pytest.mark.parametrize("name", NAMES)
def test_the_platform_comes_through_the_scenario(platform: Stage, name: str) -> None:
    outcome = platform.outcome(SCENARIOS[name])

    assert outcome.good, f"{outcome}\nreproduce: python tests-e2e/fault/run_scenario.py {name}"
