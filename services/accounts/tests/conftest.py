"""accounts in a database of its own, callers of every kind, and its relay, run by hand."""

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases, worker
from accounts.app import create_app, dependencies
from accounts.config import Config
from chassis import db
from chassis.outbox import Outbox
from chassis.outbox.relay import Relay
from chassis.queues import Publisher
from tip_testing.accounts_caller import Caller, bearer, drain
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("accounts")).test_client()


@pytest.fixture(scope="module")
def deps(platform: Platform) -> Iterator[usecases.Deps]:
    """What the worker processes of accounts work with."""
    made = dependencies(Config.from_env(platform.environment("accounts")))
    yield made
    made.engine.dispose()


@pytest.fixture
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization()


@pytest.fixture
def admin(client: FlaskClient, organization: Organization) -> Caller:
    return Caller(client, bearer(organization.tokens["admin"]))


@pytest.fixture
def account_id(admin: Caller) -> str:
    return str(admin.account()["id"])


@pytest.fixture
def relay(platform: Platform, deps: usecases.Deps) -> Iterator[Relay]:
    """Starts with nothing left to do."""
    publisher = Publisher(platform.redis_url)
    relay = Relay(deps.outbox, publisher, worker.ROUTES, worker.handlers(deps), worker.FAILURES)
    drain(relay)
    yield relay
    publisher.close()


@pytest.fixture(scope="module")
def operator(client: FlaskClient, identity: IdentityFixtures) -> Caller:
    """A service account that may read the outbox health report."""
    return Caller(client, bearer(identity.service_account(["credential:read"]).token))


@pytest.fixture
def outbox(platform: Platform, client: FlaskClient) -> Iterator[Outbox]:
    """An empty one."""
    with platform.admin() as connection:
        connection.execute(
            text("TRUNCATE accounts.outbox, accounts.outbox_completed, accounts.outbox_backlog RESTART IDENTITY")
        )
        connection.execute(text("UPDATE accounts.outbox_head SET last_position = 0, counted_below = 0"))
    engine = db.engine(platform.database_url("accounts"), pool_size=2, name="tests")
    yield Outbox(engine, "accounts", attempt_limit=3)
    engine.dispose()
