"""A vault in trouble, and sealed secrets that were tampered with."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import text

from accounts import usecases, worker
from chassis.outbox.relay import Relay
from credential_vault import Local, Refused, Secret, SecretPath, Unavailable
from tip_testing.accounts_caller import (
    NEWER,
    Caller,
    bearer,
    column,
    credential_path,
    drain,
    events,
    opened_secret,
    secret_path,
)
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.outbox import age_claims
from tip_testing.platform_plugin import Platform


def test_objects_swapped_or_rolled_back_in_the_table_are_refused(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, platform: Platform
) -> None:
    first, second = admin.credential(account_id), admin.credential(account_id, NEWER)
    drain(relay)
    copy = (
        "UPDATE accounts.vault_object t SET wrapped_key = f.wrapped_key, ciphertext = f.ciphertext, key_id = f.key_id"
    )
    with platform.admin() as connection:
        connection.execute(text("CREATE TABLE public.stolen AS SELECT * FROM accounts.vault_object"))
        connection.execute(
            text(f"{copy} FROM accounts.vault_object f WHERE t.credential_id = :to AND f.credential_id = :from"),
            {"to": second["id"], "from": first["id"]},
        )
        with pytest.raises(Refused):
            deps.vault.get(secret_path(second, 1))
        admin.call("PUT", f"{credential_path(first)}/secret", json={"secret": NEWER})
        drain(relay)
        connection.execute(
            text(
                f"{copy} FROM public.stolen f WHERE t.credential_id = :id AND f.credential_id = :id AND t.version = 2"
            ),
            {"id": first["id"]},
        )
        connection.execute(text("DROP TABLE public.stolen"))

    with pytest.raises(Refused):
        deps.vault.get(secret_path(first, 2))


class Broken:
    """A vault in trouble, in front of a real one."""

    def __init__(self, behind: Local, trouble: Exception) -> None:
        self.behind, self.trouble, self.over = behind, trouble, False

    def put(self, path: SecretPath, secret: Secret) -> None:
        if not self.over:
            raise self.trouble
        self.behind.put(path, secret)

    def get(self, path: SecretPath) -> Secret:
        return self.behind.get(path)

    def destroy(self, path: SecretPath) -> None:
        self.behind.destroy(path)


def _with_vault(relay: Relay, deps: usecases.Deps, vault: Any) -> Relay:
    changed = usecases.Deps(deps.engine, deps.outbox, deps.keyring, vault, deps.fingerprint_key)
    return Relay(deps.outbox, relay.publisher, worker.ROUTES, worker.handlers(changed), worker.FAILURES)


def test_a_vault_that_is_down_burns_no_attempts_and_holds_up_nobody_else(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps
) -> None:
    vault = Broken(deps.vault, Unavailable())  # type: ignore[arg-type]
    broken = _with_vault(relay, deps, vault)
    credential = admin.credential(account_id)
    admin.post(f"/v1/accounts/{account_id}/disable", {"reason": "audit"})
    for _ in range(deps.outbox.attempt_limit + 5):
        broken.drain_once()
        with deps.engine.begin() as tx:
            tx.execute(text("UPDATE accounts.outbox SET available_at = now() WHERE status = 'pending'"))

    waiting = {row.event_type: (row.status, row.attempts, row.last_error) for row in events(deps, account_id)}
    vault.over = True
    drain(broken)

    assert waiting["credential.created"] == ("pending", 0, "vault_unavailable")
    assert waiting["account.updated"] == ("completed", 1, None)
    assert admin.get(credential_path(credential)).json["status"] == "pending"


def test_a_vault_that_refuses_one_object_fails_that_row_at_the_limit_and_says_so(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, client: FlaskClient, identity: IdentityFixtures
) -> None:
    vault = Broken(deps.vault, Refused("policy"))  # type: ignore[arg-type]
    broken = _with_vault(relay, deps, vault)
    operator = bearer(identity.service_account(["credential:read"]).token)
    with deps.engine.begin() as tx:
        tx.execute(text("DELETE FROM accounts.outbox WHERE status = 'failed'"))  # of other tests
    credential = admin.credential(account_id)
    for _ in range(deps.outbox.attempt_limit):
        assert admin.get(credential_path(credential)).json["status"] == "pending"
        assert broken.drain_once() > 0
        with deps.engine.begin() as tx:
            tx.execute(text("UPDATE accounts.outbox SET available_at = now() WHERE status = 'pending'"))

    report = client.get("/v1/accounts/outbox/health", headers=operator).json
    [failed] = [entry for entry in report["entries"] if entry["status"] == "failed"]
    assert (failed["event_type"], failed["count"], failed["max_attempts"]) == ("credential.created", 1, 10)
    assert (report["failed"], report["oldest_failed_at"]) == (1, failed["oldest_created_at"])
    assert admin.get(credential_path(credential)).json["status"] == "invalid"

    vault.over = True  # the policy was repaired: an operator drives the row again
    with deps.engine.begin() as tx:
        [row] = deps.outbox.failed(tx)
        deps.outbox.redrive(tx, row.id)
    drain(broken)
    assert admin.get(credential_path(credential)).json["status"] == "pending"
    assert column(deps, "SELECT status FROM accounts.outbox WHERE id = :id", id=row.id) == ["failed"]


@pytest.mark.parametrize("trouble", ["a fault of any kind", "a lost worker"])
def test_a_credential_whose_row_failed_is_shown_as_invalid(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, trouble: str
) -> None:
    broken = _with_vault(relay, deps, Broken(deps.vault, ValueError("a bug")))  # type: ignore[arg-type]
    credential = admin.credential(account_id)
    with deps.engine.begin() as tx:
        last = deps.outbox.attempt_limit - 1
        tx.execute(text("UPDATE accounts.outbox SET attempts = :n WHERE status = 'pending'"), {"n": last})
    if trouble == "a lost worker":
        broken._claim()
        age_claims(deps.outbox, 6)
        broken._abandoned_at = 0.0
    broken.drain_once()

    [_, row] = events(deps, account_id)
    assert (row.status, admin.get(credential_path(credential)).json["status"]) == ("failed", "invalid")


def test_a_sealed_request_that_was_tampered_with_is_that_rows_fault(
    admin: Caller, account_id: str, relay: Relay, deps: usecases.Deps, platform: Platform
) -> None:
    first, second = admin.credential(account_id), admin.credential(account_id, NEWER)
    with platform.admin() as connection:
        connection.execute(
            text("""UPDATE accounts.sealed_secret t SET ciphertext = f.ciphertext, wrapped_key = f.wrapped_key
                    FROM accounts.sealed_secret f WHERE t.credential_id = :to AND f.credential_id = :from"""),
            {"to": second["id"], "from": first["id"]},
        )
    relay.drain_once()

    [_, good, bad] = events(deps, account_id)
    assert (good.status, bad.status, bad.last_error) == ("completed", "pending", "BrokenSeal")
    admin.call("PUT", f"{credential_path(second)}/secret", json={"secret": NEWER})
    drain(relay)
    assert opened_secret(deps, second["id"]) == NEWER
