"""A secret with an unmistakable value goes through everything; afterwards it is searched for everywhere."""

import base64
import io
import logging
import signal
from collections.abc import Iterator
from contextlib import redirect_stderr
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts.app import create_app, dependencies
from accounts.config import Config
from chassis import metrics
from chassis.outbox import Outbox
from chassis.outbox.ddl import let_append
from credential_vault import SecretPath
from tip_testing.accounts_caller import Caller, bearer, column
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.outbox import statuses
from tip_testing.platform_plugin import Platform
from tip_testing.processes import running
from tip_testing.waiting import eventually

KEY_ID, SECRET_KEY = "CANARYKEYID4711", "canary-secret-value-0815"
NEEDLES = [
    form
    for value in (KEY_ID, SECRET_KEY)
    for form in (value, base64.b64encode(value.encode()).decode().rstrip("="), value.encode().hex())
]
SECRET = {"key_id": KEY_ID, "secret_key": SECRET_KEY}


class Everything:
    """What was answered, logged, stored, queued and measured."""

    def __init__(self, platform: Platform, identity: IdentityFixtures) -> None:
        self.log = io.StringIO()
        with redirect_stderr(self.log):
            self.client: FlaskClient = create_app(platform.web_environment("accounts", LOG_LEVEL="debug")).test_client()
        self.platform = platform
        self.admin = Caller(self.client, bearer(identity.organization().tokens["admin"]))
        self.deps = dependencies(Config.from_env(platform.environment("accounts")))
        self.answers: list[str] = []

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        sent = more if "data" in more else {**more, "json": body}
        with redirect_stderr(self.log):
            answer = self.admin.call(method, path, **sent)
        self.answers.append(f"{answer.status_code} {answer.headers} {answer.text}")
        return answer


@pytest.fixture(scope="module")
def everything(platform: Platform, identity: IdentityFixtures) -> Iterator[Everything]:
    everything = Everything(platform, identity)
    saved = logging.getLogger().handlers[:], logging.getLogger().level
    yield everything
    logging.getLogger().handlers, logging.getLogger().level = saved[0], saved[1]


@pytest.fixture(scope="module")
def relay_log(everything: Everything, platform: Platform) -> str:
    """The whole life of credentials, good and bad, with a relay that first fails and then succeeds."""
    account = everything.call("POST", "/v1/accounts", {"name": "x", "broker": "alpaca", "environment": "paper"}).json
    path = f"/v1/accounts/{account['id']}/credentials"
    made = [everything.call("POST", path, {"label": "x", "secret": SECRET}).json for _ in range(3)]
    everything.call("PUT", f"{path}/{made[0]['id']}/secret", {"secret": SECRET})
    _wrongly(everything, path, made[0]["id"])
    environment = platform.environment("accounts", LOG_LEVEL="debug", OUTBOX_ATTEMPT_LIMIT="1")
    with platform.admin() as connection:  # a request that no longer opens, so that the relay has something to fail at
        connection.execute(
            text("UPDATE accounts.sealed_secret SET wrapped_key = '\\x00' WHERE credential_id = :id"),
            {"id": made[2]["id"]},
        )
    with running("-m", "accounts.worker", "relay", environment=environment) as relay:
        eventually(lambda: settled(everything.deps.outbox))
        everything.call("DELETE", f"{path}/{made[1]['id']}")
        eventually(lambda: settled(everything.deps.outbox))
        relay.end(signal.SIGTERM)
    assert statuses(everything.deps.outbox)["failed"] == 1
    return relay.output()


def settled(outbox: Outbox) -> bool:
    return not {"pending", "processing"} & set(statuses(outbox))


def _wrongly(everything: Everything, path: str, credential_id: str) -> None:
    """Every way of being refused with the secret in the request."""
    for body in (
        {"label": "x", "secret": {**SECRET, "more": SECRET_KEY}},
        {"label": "x", "secret": SECRET_KEY},
        {"label": "x", "secret": [SECRET]},
        {"label": "", "secret": SECRET},
        {"secret": {"key_id": KEY_ID, "secret_key": SECRET_KEY + "\n"}},
        {"secret": {"key_id": KEY_ID, "secret_key": SECRET_KEY * 20}},
    ):
        assert everything.call("POST", path, body).status_code == 422
    secret = f"{path}/{credential_id}/secret"
    assert everything.call("PUT", secret, {"secret": SECRET}, headers={"If-Match": '"99"'}).status_code == 412
    assert everything.call("PUT", path, {"secret": SECRET}).status_code == 405
    broken = f'{{"secret": "{SECRET_KEY}'
    assert everything.call("PUT", secret, data=broken, content_type="application/json").status_code == 400
    assert everything.call("PUT", secret, data=f"secret_key={SECRET_KEY}").status_code == 415
    with everything.platform.admin() as connection:
        connection.execute(text("REVOKE INSERT ON accounts.outbox FROM tip_accounts_web"))
        assert everything.call("POST", path, {"label": "x", "secret": SECRET}).status_code == 500
        connection.execute(text(let_append("accounts", "tip_accounts_web")))


def _found(haystack: str) -> list[str]:
    return [needle for needle in NEEDLES if needle in haystack]


def test_the_secret_did_arrive_in_the_vault(everything: Everything, relay_log: str) -> None:
    with everything.deps.engine.connect() as tx:
        row = tx.execute(
            text("SELECT organization_id, account_id, id, vault_version FROM accounts_api.credential WHERE version = 2")
        ).one()

    assert everything.deps.vault.get(SecretPath(*row)).reveal() == SECRET


def test_no_answer_holds_it(everything: Everything, relay_log: str) -> None:
    # A pointer names a field the caller invented; no field of ours is named like a secret.
    assert len(everything.answers) > 12
    assert _found("\n".join(everything.answers)) == []


def test_no_log_holds_it(everything: Everything, relay_log: str) -> None:
    web_log = everything.log.getvalue()

    assert '"unexpected_error"' in web_log and '"outbox_row_failed"' in relay_log
    assert _found(web_log) == _found(relay_log) == []


def test_no_column_of_the_database_holds_it(everything: Everything, relay_log: str, platform: Platform) -> None:
    searched = 0
    with platform.admin() as connection:
        columns = connection.execute(
            text("""SELECT table_schema, table_name FROM information_schema.tables
                    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2""")
        ).all()
        for schema, table in columns:
            # The text of a whole row has every column: text, json, and bytea as hex.
            for row in connection.execute(text(f'SELECT t::text FROM "{schema}"."{table}" t')).scalars():
                assert _found(row) == [], f"{schema}.{table}"
                searched += 1

    assert searched > 30
    assert column(everything.deps, "SELECT count(*) > 0 FROM accounts.vault_object") == [True]


def test_no_key_of_redis_holds_it(everything: Everything, relay_log: str, platform: Platform) -> None:
    with redis.Redis.from_url(platform.redis_url) as server:
        kept = {key: server.dump(key) for key in server.scan_iter()}
        messages = [body for key in kept if server.type(key) == b"list" for body in server.lrange(key, 0, -1)]

    assert kept and messages
    assert _found(repr(kept)) == []
    for message in messages:
        bodies = base64.b64decode(message[message.find(b'"body": "') + 9 :].split(b'"')[0] + b"==")
        assert _found(message.decode() + bodies.decode(errors="replace")) == []


def test_no_metric_holds_it(everything: Everything, relay_log: str) -> None:
    exposed = metrics.exposition().decode()

    assert "tip_http_requests_total" in exposed
    assert _found(exposed) == []
