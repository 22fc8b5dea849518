"""What the tests of intents share: an app on a real database, and a desk to trade from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Connection, text
from werkzeug.test import TestResponse

from intents.app import dependencies
from intents.config import Config
from intents.store.statement import Statement
from intents.usecases import Deps
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform

from .serving import create_app, introduce


@cache
def worker_deps(platform: Platform) -> Deps:
    return dependencies(Config.from_env(platform.environment("intents")))


@dataclass
class Desk:
    """An account, the keys of its organization, and what is in the tables about it."""

    app: Flask
    platform: Platform
    organization: Organization
    account_id: UUID
    admin: Connection = field(repr=False)
    environment: str = "paper"

    @property
    def client(self) -> FlaskClient:
        return self.app.test_client()

    @property
    def deps(self) -> Deps:
        """What the worker processes of intents work with."""
        return worker_deps(self.platform)

    @property
    def path(self) -> str:
        return f"/v1/accounts/{self.account_id}/intents"

    @property
    def headers(self) -> dict[str, str]:
        return {"x-api-key": self.organization.api_keys[self.environment]}

    def submit(self, body: Any, *, query: str = "", **headers: str) -> TestResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.post(self.path + query, json=body, headers={**self.headers, **named})

    def created(self, body: Any) -> Any:
        answer = self.submit(body)
        assert answer.status_code == 201, answer.get_data(as_text=True)
        return answer.json

    def get(self, path: str = "") -> TestResponse:
        return self.client.get(self.path + path, headers=self.headers)

    def rows(self, table: str) -> list[Any]:
        return self.execute(f"SELECT * FROM intents.{table} WHERE account_id = :account_id").mappings().all()

    def outbox(self) -> list[Any]:
        found = self.execute("SELECT * FROM intents.outbox WHERE payload ->> 'account_id' = CAST(:account_id AS text)")
        return found.mappings().all()

    def execute(self, statement: str, **values: Any) -> Any:
        """As superuser, behind the back of the service."""
        return self.admin.execute(text(statement), {"account_id": self.account_id, **values})


@pytest.fixture(scope="module")
def app(platform: Platform) -> Iterator[Flask]:
    app = create_app(platform.web_environment("intents", LOG_LEVEL="warning", QUOTE_WAIT_SECONDS="0.05"))
    yield app
    app.extensions["deps"].engine.dispose()


@pytest.fixture(scope="module")
def admin(platform: Platform) -> Iterator[Connection]:
    with platform.admin() as connection:
        yield connection


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization(entitlements=("trading_live",))


@pytest.fixture(scope="module")
def new_desk(app: Flask, platform: Platform, identity: IdentityFixtures, admin: Connection) -> Callable[..., Desk]:
    """Makes a desk, in an organization of its own if none is given."""

    def make(environment: str = "paper", organization: Organization | None = None, **account: str) -> Desk:
        of = organization or identity.organization(entitlements=("trading_live",))
        introduce(app, of.api_keys[environment])
        return Desk(app, platform, of, add_account(admin, of.id, environment, **account), admin, environment)

    return make


@pytest.fixture
def desk(new_desk: Callable[..., Desk], organization: Organization) -> Desk:
    """A new paper account of the module's organization."""
    return new_desk(organization=organization)


@pytest.fixture
def statements(desk: Desk) -> Iterator[list[str]]:
    """The names of the statements sent meanwhile."""
    connections, sent = desk.app.extensions["deps"].connections, []
    execute = connections._execute

    def noted(statement: Statement, *arguments: Any, **more: Any) -> Any:
        sent.append(statement.name)
        return execute(statement, *arguments, **more)

    connections._execute = noted  # type: ignore[method-assign]
    yield sent
    connections._execute = execute  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def client(app: Flask) -> FlaskClient:
    return app.test_client()
