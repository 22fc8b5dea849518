"""Callers of `tip` on a whole platform."""

import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sdk_platform import Platform

import tip_client

sys.path.insert(0, str(Path(__file__).parent))
from tip_caller import TipCaller


@pytest.fixture
def own_account(whole_platform: Platform) -> str:
    """An account that no other test uses."""
    with whole_platform.admin() as admin:
        return admin.accounts.create(f"tip-{uuid4().hex[:6]}", broker="paper", environment="paper").id


@pytest.fixture
def symbol() -> str:
    """One that no other test trades."""
    return f"S{uuid4().hex[:8].upper()}"


@pytest.fixture
def caller(whole_platform: Platform, tmp_path: Path) -> "CallerOf":
    return CallerOf(whole_platform, tmp_path)


@pytest.fixture
def tip(caller: "CallerOf", own_account: str) -> TipCaller:
    """`tip` with the demo's API key, for an account of the test's own."""
    return caller(account=own_account)


@pytest.fixture
def admin(caller: "CallerOf", own_account: str) -> TipCaller:
    """`tip` as an admin of the organization."""
    return caller("demo-admin", account=own_account)


class CallerOf:
    """`tip` with a profile of the demo data, and no file of anybody's."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._home = {"TIP_HOME": str(platform.home), "XDG_CONFIG_HOME": str(folder)}

    def __call__(self, profile: str = "demo", account: str | None = None) -> TipCaller:
        chosen = {"TIP_PROFILE": profile} | ({"TIP_ACCOUNT": account} if account else {})
        return TipCaller(self._home | chosen)


@pytest.fixture
def client(whole_platform: Platform, own_account: str) -> Iterator[tip_client.Client]:
    with tip_client.Client(settings=whole_platform.settings(account=own_account)) as made:
        yield made
