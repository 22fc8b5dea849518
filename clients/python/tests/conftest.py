"""The client's tests run against the whole platform that they share with those of `tip`."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from sdk_platform import Platform

import tip_client as tip


@pytest.fixture(scope="module")
def platform(whole_platform: Platform) -> Platform:
    return whole_platform


@pytest.fixture
def client(platform: Platform) -> Iterator[tip.Client]:
    with tip.Client(settings=platform.settings()) as made:
        yield made


@pytest.fixture
def symbol() -> str:
    """One that no other test trades."""
    return f"S{uuid4().hex[:8].upper()}"


@pytest.fixture
def own_account(platform: Platform) -> str:
    """An account that no other test uses."""
    with platform.admin() as admin:
        return admin.accounts.create(f"sdk-{uuid4().hex[:6]}", broker="paper", environment="paper").id
