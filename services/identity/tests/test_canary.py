"""Secrets of known value, used in every way there is: afterwards they are nowhere but with their owner."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import requests
from sqlalchemy import Connection, text

from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually

KEY = {"name": "canary", "environment": "live", "permissions": ["intent:read"]}


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "identity.log"


def test_a_key_a_secret_and_a_token_are_in_no_log_no_table_and_no_message(
    fresh_platform: Platform, log_file: Path, serve: Any
) -> None:
    """identity's web and its workers with debug logs, so that nothing is left unsaid."""
    identity = IdentityFixtures(fresh_platform.administrator_environment("identity"))
    web = fresh_platform.web_environment("identity", LOG_LEVEL="debug")
    worker = fresh_platform.environment("identity", LOG_LEVEL="debug")
    canaries = [fresh_platform.signing_key, identity.deps.signer.key_encryption_keys[0].hex()]
    with (
        serve(web, log=log_file) as (base, _),
        running("-m", "identity.worker", "relay", environment=worker, log=log_file),
        running("-m", "identity.worker", "scheduler", environment=worker, log=log_file),
    ):
        canaries += list(_exercise(base, identity))
        eventually(lambda: _all_delivered(fresh_platform), 60)
    identity.close()

    everything = {
        "the logs": log_file.read_text(),
        "the tables": "\n".join(_tables(fresh_platform)),
        "Redis": "\n".join(_redis(fresh_platform.redis_url)),
    }
    assert "request" in everything["the logs"] and "api_key.created" in everything["the tables"]
    for canary in canaries:
        for form in {canary, canary[10:-6], canary.encode().hex()}:
            assert [place for place, content in everything.items() if form in content] == []


def _all_delivered(platform: Platform) -> bool:
    with platform.admin() as connection:
        left = connection.execute(text("SELECT count(*) FROM identity.outbox WHERE status <> 'completed'"))
        return int(left.scalar_one()) == 0


def _exercise(base: str, identity: IdentityFixtures) -> Iterator[str]:
    """Use and misuse each secret: rightly, in the wrong place, and where it causes an error."""
    organization = identity.organization()
    admin = {"Authorization": f"Bearer {organization.tokens['admin']}"}
    operator = {"Authorization": f"Bearer {identity.service_account().token}"}
    key = requests.post(f"{base}/v1/api-keys", json=KEY, headers=admin, timeout=60).json()["key"]
    body = {"name": "canary", "scopes": ["intent:read"]}
    account = requests.post(f"{base}/v1/service-accounts", json=body, headers=operator, timeout=60).json()
    secret = account["client_secret"]
    form = {"grant_type": "client_credentials", "client_id": account["client_id"], "client_secret": secret}
    token = requests.post(f"{base}/oauth/token", data=form, timeout=60).json()["access_token"]
    requests.post(f"{base}/oauth/token", data=form | {"client_secret": secret + "x"}, timeout=60)
    requests.post(f"{base}/oauth/token", json=form, timeout=60)
    requests.post(f"{base}/api/v1/auth/api-key/validate", json={"api_key": key}, timeout=60)
    requests.post(f"{base}/api/v1/auth/api-key/validate", json={"api_key": key + "x", "more": key}, timeout=60)
    requests.post(f"{base}/api/v1/auth/api-key/validate", data=json.dumps({"api_key": key})[:-1], timeout=60)
    for headers in ({"x-api-key": key}, {"Authorization": f"Bearer {token}"}, {"Authorization": f"Bearer {key}"}):
        requests.get(f"{base}/v1/auth/self", headers=headers, timeout=60)
        requests.get(f"{base}/v1/api-keys/{key}", headers=headers, timeout=60)
    requests.get(f"{base}/v1/organizations/by-provider/local/{token}", headers=operator, timeout=60)
    requests.get(f"{base}/v1/auth/self", headers={"x-request-id": key, "x-api-key": token}, timeout=60)
    invited = {"subject": identity.subject(organization.external_id, "guest"), "role": "member"}
    path = f"{base}/v1/organizations/{organization.id}/invitations"
    code = requests.post(path, json=invited, headers=admin, timeout=60).json()["code"]
    requests.post(f"{base}/v1/invitations/accept", json={"code": code}, headers=admin, timeout=60)
    requests.get(f"{path}/{code}", headers=admin, timeout=60)
    guest = {"Authorization": f"Bearer {identity.user_without_organization(invited['subject'])}"}
    requests.post(f"{base}/v1/invitations/accept", json={"code": code}, headers=guest, timeout=60)
    yield from (key, secret, token, code)


def _tables(platform: Platform) -> Iterator[str]:
    """Every value of every column of every table, as text: what a dump would show."""
    with platform.admin() as connection:
        for schema, table in _relations(connection):
            for row in connection.execute(text(f'SELECT t::text FROM "{schema}"."{table}" t')):
                yield row[0]


def _relations(connection: Connection) -> list[tuple[str, str]]:
    query = """
        SELECT table_schema, table_name FROM information_schema.tables
        WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'
    """
    return [tuple(row) for row in connection.execute(text(query))]


def _redis(url: str) -> Iterator[str]:
    with redis.Redis.from_url(url) as server:
        for key in server.scan_iter():
            dumped = server.dump(key) or b""
            yield f"{key!r} {dumped!r}"
