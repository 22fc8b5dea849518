"""Accounts and broker credentials by `tip`, on a whole platform."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

from tip_testing.waiting import eventually

WAIT = ("--wait", "--timeout", "90")


@pytest.fixture
def secret() -> dict[str, str]:
    return {"key_id": "K1", "secret_key": uuid4().hex}


@pytest.fixture
def name() -> str:
    return f"tip-{uuid4().hex[:8]}"


def test_an_account_is_created_changed_and_deleted(admin: TipCaller, name: str) -> None:
    paper = ("--broker", "paper", "--environment", "paper")
    made = admin.json("accounts", "create", name, *paper, "--time-zone", "Europe/Berlin")

    assert (made["name"], made["time_zone"], made["disabled"]) == (name, "Europe/Berlin", False)
    assert f"{made['id'][:8]}  {name} " in admin.done("accounts")
    assert admin.json("accounts", "change", name, "--name", f"{name}-2", "--time-zone", "UTC")["time_zone"] == "UTC"
    disabled = admin.done("accounts", "disable", made["id"][:13], "--reason", "audit")
    assert disabled == f"✓ account '{name}-2' ({made['id'][:8]}) is disabled: audit\n"
    assert "disabled: audit" in admin.done("accounts", "show", f"{name}-2")
    assert not admin.json("accounts", "enable", f"{name}-2")["disabled"]
    assert admin.json("accounts", "delete", f"{name}-2") == {"id": made["id"], "deleted": True}
    assert made["id"] not in {account["id"] for account in admin.json("accounts", "list")["data"]}


def test_an_account_with_open_orders_is_deleted_when_they_have_ended(
    tip: TipCaller, admin: TipCaller, own_account: str
) -> None:
    tip.done("buy", "SIM.OPEN", "1", "--limit", "1")

    refused = admin("accounts", "delete", own_account)
    assert refused.exit_code == 1 and "open_intents" in refused.stderr and "--cancel-open" in refused.stderr
    assert admin("accounts", "delete", own_account, "--cancel-open").exit_code == 0

    eventually(lambda: admin("accounts", "show", own_account).exit_code == 1)


def test_the_account_of_the_profile_is_shown(tip: TipCaller, own_account: str) -> None:
    assert tip.json("accounts", "show")["id"] == own_account


@pytest.mark.parametrize("words", [("disable", ""), ("delete", ""), ("enable", ""), ("delete",), ("change", "x")])
def test_an_account_that_is_not_named_is_not_changed(
    admin: TipCaller, own_account: str, words: tuple[str, ...]
) -> None:
    assert admin("accounts", *words).exit_code == 2
    assert not admin.json("accounts", "show", own_account)["disabled"]


def test_brokers_say_what_a_credential_is_made_of(admin: TipCaller) -> None:
    brokers = {broker["name"]: broker for broker in admin.json("broker", "list")["data"]}

    assert [part["name"] for part in brokers["alpaca"]["credential"]] == ["key_id", "secret_key"]
    assert "none, or key_id secret_key" in admin.done("broker", "list")


def test_a_credential_is_added_rotated_and_deleted(admin: TipCaller, secret: dict[str, str], tmp_path: Path) -> None:
    made = admin.json("credentials", "add", "first", *WAIT, stdin=json.dumps(secret))
    (tmp_path / "secret.json").write_text(json.dumps(secret | {"key_id": "K2"}))

    rotated = admin.json("credentials", "rotate", "first", "--file", str(tmp_path / "secret.json"), *WAIT)

    assert (made["status"], rotated["status"]) == ("active", "active")
    assert (rotated["id"], rotated["version"]) == (made["id"], made["version"] + 1)
    assert f"{made['id'][:8]}  first  paper   active " in admin.done("credentials")
    assert admin.json("credentials", "delete", made["id"][:8]) == {"id": made["id"], "deleted": True}
    assert admin.json("credentials", "list") == {"data": []}


def test_a_credential_is_tested_again(admin: TipCaller, secret: dict[str, str]) -> None:
    made = admin.json("credentials", "add", "again", *WAIT, stdin=json.dumps(secret))

    assert admin.json("credentials", "test", "again", *WAIT)["test_status"] == "accepted"
    assert "accepted" in admin.done("credentials", "test", "again", *WAIT)
    assert admin.json("credentials", "test", made["id"])["test_status"] == "pending"
    admin.done("credentials", "delete", made["id"])


def test_a_credential_that_the_broker_refuses_is_exit_code_1(admin: TipCaller) -> None:
    refused = admin("credentials", "add", "bad", *WAIT, stdin=json.dumps({"key_id": "INVALID", "secret_key": "x" * 20}))

    assert refused.exit_code == 1 and refused.stdout.startswith("✗ credential 'bad' (")


def test_a_secret_is_never_shown(admin: TipCaller, secret: dict[str, str]) -> None:
    answers = [
        admin("credentials", "add", "first", stdin=json.dumps(secret)),
        admin("credentials", "add", "first", "--json", stdin=json.dumps(secret | {"other": secret["secret_key"]})),
        admin("credentials", "add", "second", stdin=secret["secret_key"]),
        admin("credentials", "list", "--json"),
        admin("accounts", "show", "--json"),
    ]

    assert [answer.exit_code for answer in answers] == [0, 1, 2, 0, 0]
    assert not any(secret["secret_key"] in answer.output for answer in answers)


@pytest.mark.parametrize("given", ["", "[]", "{}", '{"key_id": 1}', "{", "[" * 100_000, "\x00"])
def test_what_is_no_secret_is_exit_code_2_and_says_what_is_one(admin: TipCaller, given: str) -> None:
    refused = admin("credentials", "add", "first", stdin=given)

    assert refused.exit_code == 2 and '{"key_id": "…", "secret_key": "…"}' in refused.stderr


def test_an_unknown_credential_is_exit_code_1(admin: TipCaller) -> None:
    assert admin("credentials", "delete", "none").exit_code == 1


def test_live_accounts_ask_before_they_are_changed(caller, whole_platform: Platform, secret: dict[str, str]) -> None:
    account = whole_platform.account(environment="live")
    live = caller("demo-admin", account=account)
    made = live.json("credentials", "add", f"c-{uuid4().hex[:8]}", stdin=json.dumps(secret))

    for words in (
        ("accounts", "disable", account), ("accounts", "enable", account), ("accounts", "delete", account),
        ("accounts", "change", account, "--time-zone", "UTC"),
        ("credentials", "rotate", made["id"]), ("credentials", "delete", made["id"]),
    ):  # fmt: skip
        refused = live(*words)
        assert refused.exit_code == 2 and "live account " in refused.stderr and "--yes" in refused.stderr

    live.done("credentials", "delete", made["id"], "--yes")
