"""Calling accounts, running its relay by hand and reading its tables, from a test."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from flask.testing import FlaskClient
from sqlalchemy import text
from werkzeug.test import TestResponse

from accounts import usecases
from chassis.outbox.relay import Relay
from credential_vault import Envelope, SecretPath, open_object
from tip_testing.outbox import make_due

SECRET = {"key_id": "PK0123456789", "secret_key": "correct-horse-battery-staple"}  # for tests - opens nothing # nosec B105
NEWER = {"key_id": "PK2", "secret_key": "a-newer-secret"}  # for tests - opens nothing # nosec B105


@dataclass(frozen=True)
class Caller:
    """Somebody with a credential."""

    client: FlaskClient
    headers: dict[str, str]

    def get(self, path: str, **more: Any) -> TestResponse:
        return self.call("GET", path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> TestResponse:
        return self.call("POST", path, json=json, **more)

    def call(self, method: str, path: str, *, headers: dict[str, str] | None = None, **more: Any) -> TestResponse:
        return self.client.open(path, method=method, headers={**self.headers, **(headers or {})}, **more)

    def account(self, environment: str = "paper", **more: Any) -> dict[str, Any]:
        body = {"name": "Main", "broker": "paper", "environment": environment, **more}
        return _made(self.post("/v1/accounts", body))

    def credential(self, account_id: str, secret: dict[str, str] | None = None) -> dict[str, Any]:
        body = {"label": "Trading", "secret": secret or SECRET}
        return _made(self.post(f"/v1/accounts/{account_id}/credentials", body))


def _made(answer: TestResponse) -> dict[str, Any]:
    if answer.status_code != 201:
        raise AssertionError(answer.text)
    return dict(answer.get_json())


def bearer(token: str, organization_id: UUID | None = None) -> dict[str, str]:
    header = {"Authorization": f"Bearer {token}"}
    return header | ({"x-organization-id": str(organization_id)} if organization_id else {})


def drain(relay: Relay) -> None:
    make_due(relay.outbox)
    while relay.drain_once():
        pass


def column(deps: usecases.Deps, statement: str, **values: Any) -> list[Any]:
    with deps.engine.connect() as tx:
        return list(tx.execute(text(statement), values).scalars())


def events(deps: usecases.Deps, account_id: str) -> list[Any]:
    """The outbox rows about an account, oldest first."""
    statement = text("SELECT * FROM accounts.outbox WHERE payload ->> 'account_id' = :id ORDER BY id")
    with deps.engine.connect() as tx:
        return list(tx.execute(statement, {"id": account_id}))


def credential_path(credential: dict[str, Any]) -> str:
    return f"/v1/accounts/{credential['account_id']}/credentials/{credential['id']}"


def secret_path(credential: dict[str, Any], version: int = 1) -> SecretPath:
    organization_id, account_id, credential_id = (
        UUID(credential[key]) for key in ("organization_id", "account_id", "id")
    )
    return SecretPath(organization_id, account_id, credential_id, version)


def opened_secret(deps: usecases.Deps, credential_id: str) -> dict[str, str]:
    """The secret as an executor would read it: the published view and the key-encryption key, no service."""
    with deps.engine.connect() as tx:
        row = tx.execute(text("SELECT * FROM accounts_api.credential WHERE id = :id"), {"id": credential_id}).one()
    path = SecretPath(row.organization_id, row.account_id, row.id, row.vault_version)
    envelope = Envelope(row.key_id, bytes(row.wrapped_key), bytes(row.ciphertext))
    return open_object(deps.keyring, path, envelope).reveal()
