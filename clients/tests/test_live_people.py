"""API keys, members and the audit log of the organization by `tip`, on a whole platform."""

import json
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import pytest
from login_caller import new_admin
from sdk_platform import Platform
from tip_caller import TipCaller

import tip_client
from tip_client.models.identity import KeyBounds

READ = ("--environment", "paper", "--permission", "intent:read")


@pytest.fixture
def name() -> str:
    return f"key-{uuid4().hex[:8]}"


@pytest.fixture
def subject() -> str:
    return f"somebody|{uuid4().hex}/x"


def key_ids(admin: TipCaller) -> set[str]:
    return {key["id"] for key in admin.json("keys")["data"]}


def test_a_key_is_printed_once_and_alone(admin: TipCaller, whole_platform: Platform, name: str) -> None:
    made = admin("keys", "create", name, *READ, "--expires", "1d")

    key = made.stdout.removesuffix("\n")
    assert made.exit_code == 0 and key.startswith("tip_paper_") and not set(key) & set(" \n")
    assert "not shown again" in made.stderr and key not in made.stderr
    with tip_client.Client(whole_platform.local["base_url"], key=key) as bot:
        assert bot.me.read().permissions == ("intent:read",)
    assert key not in admin.done("keys") + admin.done("keys", "list", "--json")
    admin.done("keys", "delete", name)


def test_a_key_is_bounded_by_the_command_line(admin: TipCaller, own_account: str, name: str) -> None:
    words = ("--account", own_account, "--symbol", "AAPL", "--symbol", "MSFT", "--max-notional-per-day", "1000")
    made = admin.json("keys", "create", name, *READ, *words)

    assert made["bounds"] == {
        "accounts": [own_account],
        "symbols": ["AAPL", "MSFT"],
        "max_notional_per_day": "1000",
    }
    row = next(line for line in admin.done("keys").splitlines() if name in line)
    assert f"{own_account[:8]} AAPL MSFT 1000/day" in row
    assert admin("keys", "create", name, *READ, "--account", "nobody's").exit_code == 1


def test_the_sdk_makes_shows_and_removes_bounds(whole_platform: Platform, own_account: str, name: str) -> None:
    bounds = KeyBounds((own_account,), ("AAPL",), Decimal("12.50"))
    with whole_platform.admin() as admin:
        made = admin.keys.create(name, environment="paper", permissions=["intent:read"], bounds=bounds)
        with tip_client.Client(whole_platform.local["base_url"], key=made.key) as bot:
            assert made.bounds == bot.me.read().bounds == bot.me.validate_key(made.key).bounds == bounds
        assert admin.keys.change(made.id, bounds=KeyBounds()).bounds is None


def test_a_key_is_changed_disabled_and_deleted(admin: TipCaller, name: str) -> None:
    made = admin.json("keys", "create", name, *READ)
    changed = admin.json("keys", "change", name, "--name", f"{name}-2", "--permission", "account:read")

    assert (changed["id"], changed["permissions"], "key" in changed) == (made["id"], ["account:read"], False)
    assert admin.json("keys", "disable", made["id"][:8])["disabled"]
    row = next(line for line in admin.done("keys").splitlines() if f"{name}-2" in line)
    assert row.split()[2:4] == ["paper", "disabled"]
    assert admin.done("keys", "enable", f"{name}-2") == f"✓ key '{name}-2' ({made['id'][:8]}) is enabled\n"
    assert admin.json("keys", "delete", f"{name}-2") == {"id": made["id"], "deleted": True}
    gone = admin("keys", "delete", f"{name}-2")
    assert gone.exit_code == 1 and "tip keys" in gone.stderr


def test_a_live_key_asks_before_it_is_changed(admin: TipCaller, name: str) -> None:
    made = admin.json("keys", "create", name, "--environment", "live", "--permission", "intent:read")

    for words in (("disable", name), ("enable", name), ("delete", name), ("change", name, "--expires", "1d")):
        refused = admin("keys", *words)
        assert refused.exit_code == 2 and "live environment" in refused.stderr and "--yes" in refused.stderr

    assert admin.json("keys", "delete", name, "--yes")["id"] == made["id"]


@pytest.mark.parametrize(
    "words",
    [("create", "x"), ("create", "x", "--environment", "paper"), ("create", "x", *READ, "--expires", "soon"),
     ("change", "x"), ("delete", "")],
    ids=" ".join,
)  # fmt: skip
def test_what_says_too_little_makes_no_key(admin: TipCaller, words: tuple[str, ...]) -> None:
    before = key_ids(admin)

    assert admin("keys", *words).exit_code == 2
    assert key_ids(admin) == before


def test_a_beginning_that_several_keys_have_is_none(admin: TipCaller, name: str) -> None:
    first, second = (admin.json("keys", "create", name, *READ)["id"] for _ in range(2))

    refused = admin("keys", "delete", name)

    assert refused.exit_code == 2 and "2 keys" in refused.stderr
    for key_id in (first, second):
        admin.done("keys", "delete", key_id)


def test_a_key_may_not_manage_keys(tip: TipCaller) -> None:
    assert tip("keys").exit_code == tip("people").exit_code == 1


def test_a_member_is_added_changed_and_removed(admin: TipCaller, subject: str) -> None:
    assert admin.json("people", "add", subject, "member")["role"] == "member"
    assert admin.done("people", "role", subject, "read_only") == f"✓ {subject} is read_only\n"
    assert subject in admin.done("people")
    roles = {member["subject"]: member["role"] for member in admin.json("people", "list")["data"]}
    assert roles[subject] == "read_only"

    refused = admin("people", "remove", subject)
    assert refused.exit_code == 2 and "--yes" in refused.stderr
    assert admin.json("people", "remove", subject, "--yes") == {"subject": subject, "removed": True}
    assert subject not in admin.done("people")


def test_the_role_of_nobody_is_not_changed(admin: TipCaller, subject: str) -> None:
    assert admin("people", "role", subject, "admin").exit_code == 1
    assert subject not in admin.done("people")


def test_somebody_invited_accepts_and_leaves(admin: TipCaller, whole_platform: Platform, tmp_path: Path) -> None:
    bob = new_admin(whole_platform, tmp_path)
    assert bob.login()[0] == 0
    subject = f"alice@{bob.organization}.example"

    made = admin("people", "invite", subject, "read_only")
    code = made.stdout.splitlines()[0].removeprefix("invitation").strip()
    assert made.exit_code == 0 and "not shown again" in made.stderr and code not in made.stderr
    listed = admin.json("people", "invitations")["data"]
    assert [(open_["role"], "code" in open_) for open_ in listed if open_["subject"] == subject] == [
        ("read_only", False)
    ]
    assert bob.tip("people", "accept", stdin="of-nobody\n").exit_code == 1
    assert bob.tip.json("people", "accept", stdin=f"{code}\n")["role"] == "read_only"

    assert bob.tip("people", "leave", "nowhere", "--yes").exit_code == 2
    assert bob.tip("people", "leave", "acme").exit_code == 2
    acme = whole_platform.local["organizations"]["acme"]["id"]
    assert bob.tip.json("people", "leave", acme, "--yes") == {"organization_id": acme, "left": True}
    assert subject not in admin.done("people")


def test_an_invitation_is_taken_back(admin: TipCaller, subject: str) -> None:
    made = admin.json("people", "invite", subject, "member")

    assert admin.json("people", "uninvite", subject) == {"id": made["id"], "revoked": True}

    assert subject not in admin.done("people", "invitations")
    assert admin("people", "uninvite", subject).exit_code == 1


def test_the_audit_log_is_listed_and_exported(admin: TipCaller, subject: str, tmp_path: Path) -> None:
    admin.done("people", "add", subject, "member")
    admin.done("people", "remove", subject, "--yes")

    removed, added = admin.json("audit", "list", "--target", subject)["data"]
    assert (added["from"], added["to"], removed["to"]) == (None, {"role": "member"}, None)
    assert f"{subject}  -" in admin.done("audit", "--limit", "2") and "role=member" in admin.done("audit")
    saved = admin.json("audit", "export", "--from", "1h", "-o", str(tmp_path / "audit.jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert saved["entries"] == len(lines) and added in lines and removed in lines
    assert admin("audit", "export", "--json").exit_code == 2
