"""`tip outbox` and `tip vault`: what an operator does when rows fail and when keys change."""

import base64
import secrets
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import text

from accounts import usecases
from accounts.app import dependencies
from accounts.config import Config
from chassis.outbox.relay import Relay
from tip.cli import main
from tip_local.accounts_kit import SECRET, Caller, drain
from tip_local.platform_plugin import Platform
from vault import Place, UnknownKey


@pytest.fixture
def tip(platform: Platform, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Any:
    monkeypatch.setenv("DATABASE_URL", platform.admin_url)
    monkeypatch.setenv("TIP_HOME", str(tmp_path))

    def run(*words: str, **environment: str) -> Result:
        return CliRunner().invoke(main, list(words), env=environment)

    return run


def _place(credential: dict[str, Any], version: int = 1) -> Place:
    ids = (UUID(credential[name]) for name in ("organization_id", "account_id", "id"))
    return Place(*ids, version)  # type: ignore[misc]


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
        ("outbox", "redrive", "accounts"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(tip: Any, words: tuple[str, ...]) -> None:
    answer = tip(*words)

    assert answer.exit_code in (1, 2)
    assert "Traceback" not in answer.output


def _key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def test_after_a_change_of_key_and_rewrap_the_old_key_opens_nothing_and_the_new_one_everything(
    tip: Any, admin: Caller, relay: Relay, platform: Platform, deps: usecases.Deps
) -> None:
    credential = admin.credential(admin.account()["id"])
    drain(relay)
    waiting = admin.credential(admin.account()["id"])
    old, new = platform.key_encryption_key, _key()

    first = tip("vault", "rewrap", KEY_ENCRYPTION_KEY=new, EARLIER_KEY_ENCRYPTION_KEYS=old)
    second = tip("vault", "rewrap", KEY_ENCRYPTION_KEY=new)
    only_new = dependencies(Config.from_env(platform.environment("accounts", KEY_ENCRYPTION_KEY=new)))

    assert (first.exit_code, first.output.split()[1] != "0") == (0, True)
    assert (second.exit_code, second.output) == (0, "tip: 0 sealed secrets re-wrapped\n")
    assert only_new.vault.get(_place(credential)).reveal() == SECRET
    with pytest.raises(UnknownKey):
        deps.vault.get(_place(credential))
    usecases.settle_credential(only_new, UUID(waiting["id"]))  # the request that was sealed under the old key
    assert only_new.vault.get(_place(waiting)).reveal() == SECRET
    back = tip("vault", "rewrap", KEY_ENCRYPTION_KEY=old, EARLIER_KEY_ENCRYPTION_KEYS=new)
    assert back.exit_code == 0 and deps.vault.get(_place(credential)).reveal() == SECRET


def test_a_key_that_is_missing_is_named(tip: Any, admin: Caller, relay: Relay) -> None:
    admin.credential(admin.account()["id"])
    drain(relay)

    answer = tip("vault", "rewrap", KEY_ENCRYPTION_KEY=_key())

    assert answer.exit_code == 1
    assert "EARLIER_KEY_ENCRYPTION_KEYS" in answer.output and "Traceback" not in answer.output
