"""`tip token` and `tip signing-keys`, on a database of their own."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from chassis import tokens
from chassis.authentication import local_keys
from identity import usecases
from tip import cli
from tip_local.home import Home, random_key
from tip_local.stack import Stack
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform


@pytest.fixture
def home(tmp_path: Path, platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that looks as if the platform ran in it, on the test's database."""
    environment = platform.administrator_environment("identity")
    monkeypatch.setenv("TIP_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", platform.admin_url)
    monkeypatch.setenv("REDIS_URL", platform.redis_url)
    monkeypatch.setattr(Stack, "signing_env", environment)
    monkeypatch.setattr(Home, "running_pid", lambda _: 1)
    return Home(tmp_path)


def write_demo(home: Home, identity: IdentityFixtures) -> dict[str, str]:
    organization = identity.organization()
    local = {
        "organizations": {"acme": {"tokens": dict(organization.tokens)}},
        "service_accounts": {"full": {"token": identity.service_account().token}},
        "tokens": {"user_without_organization": identity.user_without_organization()},
    }
    home.local_file.write_text(json.dumps(local))
    return dict(organization.tokens)


def run(*words: str) -> Result:
    return CliRunner().invoke(cli.main, words)


def test_a_demo_token_is_printed_and_nothing_else(home: Home, identity: IdentityFixtures) -> None:
    made = write_demo(home, identity)

    assert run("token").output == made["admin"] + "\n"
    assert run("token", "read_only").output == made["read_only"] + "\n"
    assert run("token", "service_account").output.count(".") == 2
    assert run("token", "no_organization").output.count(".") == 2


def test_a_new_token_is_issued_on_request_or_when_the_old_one_has_run_out(
    home: Home, identity: IdentityFixtures, platform: Platform
) -> None:
    brief = IdentityFixtures(platform.administrator_environment("identity"), token_lifetime_s=-100)
    write_demo(home, brief)
    verifier = tokens.Verifier(local_keys(identity.deps.engine), issuer="https://identity.tip.local", audience="tip")

    renewed = verifier.claims(run("token", "member").output.strip())
    asked_for = verifier.claims(run("token", "member", "--lifetime", "60").output.strip())

    assert renewed["org_role"] == asked_for["org_role"] == "member"
    assert 0 < asked_for["exp"] - time.time() <= 60
    brief.close()


def test_without_demo_data_one_line_says_so(home: Home) -> None:
    answer = run("token")

    assert answer.exit_code == 1
    assert "there is no demo data" in answer.output


def test_an_unknown_organization_is_named(home: Home, identity: IdentityFixtures) -> None:
    write_demo(home, identity)

    answer = run("token", "admin", "-o", "initech")

    assert (answer.exit_code, "initech" in answer.output) == (1, True)


def test_a_new_signing_key_is_published_beside_the_old_one(home: Home, identity: IdentityFixtures) -> None:
    identity.user_token("somebody")
    before = {key["kid"] for key in usecases.public_keys(identity.deps)}

    answer = run("signing-keys", "rotate")

    after = {key["kid"] for key in usecases.public_keys(identity.deps)}
    assert answer.exit_code == 0
    assert before < after and (after - before).pop() in answer.output


def test_signing_keys_are_put_under_a_new_key_encryption_key_or_named(
    home: Home, identity: IdentityFixtures, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity.user_token("somebody")
    given = platform.administrator_environment("identity", SIGNING_KEY_ENCRYPTION_KEY=random_key())
    monkeypatch.setattr(Stack, "signing_env", given)
    kids = [key["kid"] for key in usecases.public_keys(identity.deps)]

    without = run("signing-keys", "reseal")
    given["EARLIER_SIGNING_KEY_ENCRYPTION_KEYS"] = platform.signing_key
    first, second = run("signing-keys", "reseal"), run("signing-keys", "reseal")

    assert without.exit_code == 1 and all(kid in without.output for kid in kids)
    assert (first.exit_code, first.output) == (0, f"tip: {len(kids)} signing keys resealed\n")
    assert (second.exit_code, second.output) == (0, "tip: 0 signing keys resealed\n")
