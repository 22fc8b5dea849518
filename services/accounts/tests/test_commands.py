"""`tip outbox` and `tip vault`: what an operator does when rows fail and when keys change."""

import base64
import json
import secrets
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from accounts import usecases
from accounts.app import dependencies
from accounts.config import Config
from chassis.outbox.relay import Relay
from credential_vault import UnknownKey
from tip.cli import main
from tip_testing.accounts_caller import SECRET, Caller, drain, secret_path
from tip_testing.platform_plugin import Platform


@pytest.fixture
def tip(platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    monkeypatch.setenv("DATABASE_URL", platform.admin_url)
    monkeypatch.setenv("TIP_HOME", str(tmp_path))

    def run(*words: str, **environment: str) -> Result:
        return CliRunner().invoke(main, list(words), env=environment)

    return run


@pytest.fixture
def failed_row(admin: Caller, relay: Relay, deps: usecases.Deps) -> int:
    admin.account()
    with deps.engine.begin() as tx:
        found = tx.execute(
            text("""UPDATE accounts.outbox SET status = 'failed', attempts = 10, last_error = 'Refused',
                    settled_at = now() WHERE id = (SELECT max(id) FROM accounts.outbox) RETURNING id""")
        )
        return int(found.scalar_one())


def test_failed_rows_are_listed(tip: Any, failed_row: int) -> None:
    answer = tip("outbox", "list", "accounts")

    assert answer.exit_code == 0
    assert [str(failed_row), "account.created", "10"] == answer.output.splitlines()[-1].split()[:3]
    assert answer.output.splitlines()[-1].endswith("Refused")


def test_rows_are_for_programs_too(tip: Any, failed_row: int) -> None:
    rows = json.loads(tip("outbox", "list", "accounts", "--json").output)["data"]
    [row] = [row for row in rows if row["id"] == failed_row]
    explained = json.loads(tip("--json", "outbox", "explain", "accounts", str(failed_row)).output)
    [driven] = json.loads(tip("outbox", "redrive", "accounts", str(failed_row), "--json").output)["data"]

    assert (row["id"], row["attempts"], row["last_error"]) == (failed_row, 10, "Refused")
    assert UUID(explained["row"]["event_id"]) and "attempt limit" in explained["explanation"][0]
    assert driven["id"] == failed_row and driven["redriven_as"] > failed_row


def test_a_service_without_failed_rows_says_so(tip: Any) -> None:
    assert tip("outbox", "list", "identity").output == "tip: identity has no failed rows\n"


def test_a_row_is_explained(tip: Any, failed_row: int) -> None:
    output = tip("outbox", "explain", "accounts", str(failed_row)).output

    assert "reached the attempt limit" in output and "the vault refuses this object" in output


def test_a_row_that_waits_behind_another_says_so(tip: Any, admin: Caller, deps: usecases.Deps) -> None:
    account = admin.account()
    admin.post(f"/v1/accounts/{account['id']}/disable", {})
    with deps.engine.connect() as tx:
        ids = tx.execute(text("SELECT id FROM accounts.outbox ORDER BY id DESC LIMIT 2")).scalars().all()

    assert f"waits behind row {ids[1]}" in tip("outbox", "explain", "accounts", str(ids[0])).output


def test_a_failed_row_is_driven_again_as_a_new_one_and_stays_failed(
    tip: Any, failed_row: int, relay: Relay, deps: usecases.Deps
) -> None:
    answer = tip("outbox", "redrive", "accounts", str(failed_row))
    drain(relay)

    with deps.engine.connect() as tx:
        old, new = tx.execute(
            text("SELECT * FROM accounts.outbox WHERE id >= :id ORDER BY id"), {"id": failed_row}
        ).all()
    assert (answer.exit_code, answer.output) == (0, f"row {old.id} is driven again as row {new.id}\n")
    assert (old.status, new.status) == ("failed", "completed")
    assert new.payload == {**old.payload, "event_id": str(new.event_id)} and new.event_id != old.event_id


@pytest.mark.parametrize(
    "words",
    [
        ("outbox", "redrive", "accounts", "999999999"),
        ("outbox", "explain", "accounts", "999999999"),
        ("outbox", "list", "nobody"),
        ("outbox", "list", "stream_gateway"),
        ("outbox", "explain", "stream_gateway", "1"),
        ("outbox", "redrive", "accounts"),
    ],
)
def test_what_is_not_there_is_reported_in_one_line(tip: Any, words: tuple[str, ...]) -> None:
    answer = tip(*words)

    assert answer.exit_code in (1, 2)
    assert not isinstance(answer.exception, SQLAlchemyError)
    assert "Traceback" not in answer.output


def test_a_service_without_an_outbox_says_so(tip: Any) -> None:
    assert "stream_gateway has no outbox" in tip("outbox", "list", "stream_gateway").output


def test_what_was_driven_again_is_not_driven_again_by_accident(
    tip: Any, failed_row: int, relay: Relay, deps: usecases.Deps
) -> None:
    copy = tip("outbox", "redrive", "accounts", "--all").output.split()[-1]
    drain(relay)

    everything = tip("outbox", "redrive", "accounts", "--all")
    by_id = tip("outbox", "redrive", "accounts", str(failed_row))
    insisting = tip("outbox", "redrive", "accounts", str(failed_row), "--again")

    assert (everything.exit_code, everything.output) == (0, "tip: accounts has no failed rows left to drive again\n")
    assert by_id.exit_code == 1 and f"row {failed_row} was driven again as row {copy}" in by_id.output
    assert "--again" in by_id.output
    assert insisting.exit_code == 0
    again = insisting.output.split()[-1]
    assert f"It was driven again as row {again}." in tip("outbox", "explain", "accounts", str(failed_row)).output


def _key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def test_after_a_change_of_key_and_rewrap_the_old_key_opens_nothing_and_the_new_one_everything(
    tip: Any, admin: Caller, relay: Relay, platform: Platform, deps: usecases.Deps
) -> None:
    credential = admin.credential(admin.account()["id"])
    drain(relay)
    waiting = admin.credential(admin.account()["id"])
    old, new = platform.vault_key, _key()

    first = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=new, EARLIER_VAULT_KEY_ENCRYPTION_KEYS=old)
    second = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=new)
    only_new = dependencies(Config.from_env(platform.environment("accounts", VAULT_KEY_ENCRYPTION_KEY=new)))

    assert (first.exit_code, first.output.split()[1] != "0") == (0, True)
    assert (second.exit_code, second.output) == (0, "tip: 0 sealed secrets re-wrapped\n")
    assert only_new.vault.get(secret_path(credential)).reveal() == SECRET
    with pytest.raises(UnknownKey):
        deps.vault.get(secret_path(credential))
    usecases.settle_credential(only_new, UUID(waiting["id"]))  # the request that was sealed under the old key
    assert only_new.vault.get(secret_path(waiting)).reveal() == SECRET
    back = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=old, EARLIER_VAULT_KEY_ENCRYPTION_KEYS=new)
    assert back.exit_code == 0 and deps.vault.get(secret_path(credential)).reveal() == SECRET


def test_one_secret_that_does_not_open_stops_none_of_the_others(
    tip: Any, admin: Caller, relay: Relay, platform: Platform
) -> None:
    credentials = [admin.credential(admin.account()["id"]) for _ in range(3)]
    drain(relay)
    broken = min(credentials, key=lambda credential: str(credential["id"]))
    spoil = text("UPDATE accounts.vault_object SET wrapped_key = :bytes WHERE credential_id = :id RETURNING 1")
    with platform.admin() as connection:
        read = text("SELECT wrapped_key FROM accounts.vault_object WHERE credential_id = :id")
        whole = bytes(connection.execute(read, {"id": broken["id"]}).scalar_one())
        connection.execute(spoil, {"bytes": b"spoilt", "id": broken["id"]})
    old, new = platform.vault_key, _key()

    answer = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=new, EARLIER_VAULT_KEY_ENCRYPTION_KEYS=old)

    opened = dependencies(Config.from_env(platform.environment("accounts", VAULT_KEY_ENCRYPTION_KEY=new))).vault
    assert answer.exit_code == 1
    assert f"credential {broken['id']} version 1 does not open" in answer.output
    assert all(opened.get(secret_path(other)).reveal() == SECRET for other in credentials if other is not broken)
    with platform.admin() as connection:
        connection.execute(spoil, {"bytes": whole, "id": broken["id"]})
    back = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=old, EARLIER_VAULT_KEY_ENCRYPTION_KEYS=new)
    assert back.exit_code == 0


def test_a_key_that_is_missing_is_named(tip: Any, admin: Caller, relay: Relay) -> None:
    admin.credential(admin.account()["id"])
    drain(relay)

    answer = tip("vault", "rewrap", VAULT_KEY_ENCRYPTION_KEY=_key())

    assert answer.exit_code == 1
    assert "EARLIER_VAULT_KEY_ENCRYPTION_KEYS" in answer.output and "Traceback" not in answer.output
