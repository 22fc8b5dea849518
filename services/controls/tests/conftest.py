"""An app, an organization that pays for controls, and its accounts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text
from werkzeug.test import TestResponse

from controls import store
from controls.app import create_app
from tip_local.identity_seed import add_account
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.platform_plugin import Platform


@dataclass(frozen=True)
class Controls:
    """The service as one caller uses it."""

    client: FlaskClient
    credential: dict[str, str]
    account_id: UUID

    def call(self, method: str, path: str = "", body: Any = None, **headers: str) -> TestResponse:
        """A request about the account; a path that begins with a slash stands for itself."""
        whole = path if path.startswith("/v1") else f"/v1/controls/accounts/{self.account_id}{path}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.open(whole, method=method, json=body, headers=self.credential | named)

    def symbol(self, method: str, symbol: str, part: str = "", body: Any = None, **headers: str) -> TestResponse:
        return self.call(method, f"/symbols/{quote(symbol, safe='')}{part}", body, **headers)


@dataclass(frozen=True)
class Setting:
    """One module's platform with the service on it."""

    platform: Platform
    identity: IdentityFixtures
    client: FlaskClient

    def account(self, organization: Organization, environment: str = "paper", time_zone: str = "UTC") -> UUID:
        with self.platform.admin() as admin:
            return add_account(admin, organization.id, environment, time_zone=time_zone)

    def controls(self, organization: Organization, account_id: UUID, role: str = "admin") -> Controls:
        return Controls(self.client, {"Authorization": f"Bearer {organization.tokens[role]}"}, account_id)

    def rows(self, table: str, account_id: UUID | None = None) -> list[dict[str, Any]]:
        where = " WHERE account_id = :account_id" if account_id else ""
        with self.platform.admin() as admin:
            found = admin.execute(text(f"SELECT * FROM controls.{table}{where}"), {"account_id": account_id})
            return [row._asdict() for row in found]

    def events(self, account_id: UUID) -> list[dict[str, Any]]:
        """The payloads queued about an account, oldest first."""
        with self.platform.admin() as admin:
            found = admin.execute(
                text("SELECT payload FROM controls.outbox WHERE ordering_key = :key ORDER BY id"),
                {"key": str(account_id)},
            )
            return [row.payload for row in found]

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """All that is stored, to see that nothing was written."""
        tables = [*(table.name for table in store.TABLES.values()), "outbox"]
        return {table: sorted(self.rows(table), key=repr) for table in tables}


@pytest.fixture(scope="module")
def setting(platform: Platform, identity: IdentityFixtures) -> Iterator[Setting]:
    app = create_app(platform.web_environment("controls"))
    yield Setting(platform, identity, app.test_client())
    app.extensions["deps"].engine.dispose()


@pytest.fixture(scope="module")
def organization(identity: IdentityFixtures) -> Organization:
    return identity.organization(entitlements=["controls_premium"])


@pytest.fixture
def controls(setting: Setting, organization: Organization) -> Controls:
    """An administrator at a new paper account."""
    return setting.controls(organization, setting.account(organization))
