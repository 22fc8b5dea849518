"""The gateway's fixtures: a running gateway, a writer to the logs, an organization and its account."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .gateway_process import Gateway, StartGateway, gateways
from .log_writer import Writer


@pytest.fixture
def start_gateway(platform: Platform, tmp_path: Path) -> Iterator[StartGateway]:
    with gateways(platform, tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def gateway(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One for the module, as configured by default, but with quick heartbeats and a retention."""
    with gateways(platform, tmp_path_factory.mktemp("gateway")) as start:
        yield start(HEARTBEAT_SECONDS="1.5", RETENTION_DAYS="7")


@pytest.fixture(scope="module")
def writer(platform: Platform) -> Iterator[Writer]:
    writer = Writer(platform)
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def acme(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def account_id(platform: Platform, acme: Organization) -> UUID:
    with platform.admin() as admin:
        return add_account(admin, acme.id)
