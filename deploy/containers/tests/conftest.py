"""The scripts that make and replace secrets, as modules, and secrets for them to work on."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tip_local.home import Home

CONTAINERS = Path(__file__).resolve().parents[1]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """rotate.py and prepare.py, which find each other by standing in one folder."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(CONTAINERS)
    yield {name: import_module(name) for name in ("rotate", "prepare")}
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(CONTAINERS)):
            del sys.modules[name]


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, str]:
    return Home(tmp_path).secrets()
