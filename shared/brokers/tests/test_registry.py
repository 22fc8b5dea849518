"""Installed brokers are found by their entry points, and described as they must be."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from tip_broker_alpaca import PAPER
from tip_brokers import BadPlugin, Brokers, BrokerSettings, UnknownBroker, find, installed
from tip_brokers.registry import GROUP, read


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes an entry point that leads to the given object."""

    def make(name: str, described: Any) -> EntryPoint:
        module = ModuleType(f"plugin_{name}")
        module.described = described  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        return EntryPoint(name, f"{module.__name__}:described", GROUP)

    return make


def test_the_platforms_own_brokers_are_plug_ins() -> None:
    assert {"alpaca", "paper"} <= installed().keys()
    assert find("paper") is PAPER


def test_describing_brokers_loads_no_adapter() -> None:
    """Accounts lists brokers and talks to none."""
    probe = "import sys, tip_brokers; tip_brokers.installed(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True, text=True).stdout.split()

    assert "tip_broker_alpaca" in loaded
    assert not {"requests", "websockets", "tip_broker_alpaca.account"} & set(loaded)


def test_one_plug_in_may_describe_several(plugin: Any) -> None:
    family = [replace(PAPER, name="venue:one"), replace(PAPER, name="venue:two")]

    assert list(read([plugin("venue", lambda: family)])) == ["venue:one", "venue:two"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": "other"}, "named mine or mine:something"),
        ({"name": "mine:"}, "named mine or mine:something"),
        ({"name": "Mine"}, "named mine or mine:something"),
        ({"name": "mine", "environments": ("demo",)}, "environments"),
        ({"name": "mine", "environments": ()}, "environments"),
        ({"name": "mine", "credential": (PAPER.credential[0],) * 2}, "credential fields"),
    ],
)
def test_a_description_that_cannot_be_used_is_named(plugin: Any, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadPlugin, match=problem):
        read([plugin("mine", replace(PAPER, **change))])


def test_two_plug_ins_cannot_have_one_name(plugin: Any) -> None:
    mine = replace(PAPER, name="mine")

    with pytest.raises(BadPlugin, match="two brokers named mine"):
        read([plugin("mine", mine), plugin("mine", mine)])


def test_what_is_not_installed_is_not_connected_to() -> None:
    brokers = Brokers(BrokerSettings(), {"paper": replace(PAPER, environments=("paper",))})

    for name, environment in (("gone", "paper"), ("paper", "live")):
        with pytest.raises(UnknownBroker):
            brokers.account(name, environment, {})


def test_a_setting_that_is_empty_has_its_default() -> None:
    [address] = PAPER.settings

    assert BrokerSettings({address.variable: "  "}).of(address) == address.default
    assert BrokerSettings({address.variable: "http://there"}).of(address) == "http://there"
