"""`tip doctor` finds what is wrong and says what to do."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from sdk_platform import Platform
from tip_caller import TipCaller

from tip.doctor_checks import clock_check, versions_check
from tip.doctor_local import database_checks, migrations_check, processes_check
from tip_client import Client
from tip_client.models.platform import PlatformInfo


def test_a_clock_that_differs_fails() -> None:
    states = {offset: clock_check(PlatformInfo("0.1.0", 0, offset)).state for offset in (0.0, 1.5, -2.5, 90.0, None)}

    assert states == {0.0: "ok", 1.5: "ok", -2.5: "failed", 90.0: "failed", None: "warning"}
    assert clock_check(PlatformInfo("0.1.0", 0, 90.0)).text == "this clock is 90 s behind the platform's"


def test_versions_that_do_not_belong_together_are_a_warning() -> None:
    info = PlatformInfo("0.2.3", 0, 0)

    assert versions_check(info, "0.2.0", "0.2.9").state == "ok"
    assert versions_check(info, "0.2.0", "1.4.0").state == "ok"  # the SDK has versions of its own
    assert versions_check(info, "1.2.0", "0.2.0").state == "warning"


def test_a_missing_migration_and_a_process_that_is_not_ready_fail() -> None:
    assert migrations_check({"intents": "0016"}, {"intents": "0016"}).state == "ok"
    behind = migrations_check({"intents": "0015", "controls": None}, {"intents": "0016", "controls": "0003"})
    assert (behind.text, behind.advice) == ("migrations are missing in intents, controls", "tip migrate")
    assert processes_check({"web": "ready"}).state == "ok"
    assert processes_check({"web": "ready", "relay": "restarting"}).advice == "tip logs relay"


def test_a_database_that_is_down_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = SimpleNamespace(admin_url="postgresql://u:secret@127.0.0.1:9/tip")
    monkeypatch.setattr("tip_local.schema.database", lambda _: nullcontext(nowhere))

    [check] = database_checks()

    assert (check.name, check.state) == ("database", "failed")
    assert "refused" in check.text and "secret" not in check.text and "\n" not in check.text


def test_a_platform_is_read_once(monkeypatch: pytest.MonkeyPatch, tip: TipCaller) -> None:
    """A second answer may be missing, and would be about another moment."""
    platform, reads = Client.platform, []
    monkeypatch.setattr(Client, "platform", lambda self: reads.append(1) or platform(self))

    assert tip.json("doctor")["data"] and reads == [1]


def test_a_wrong_configuration_is_the_only_line(tip: TipCaller) -> None:
    """Also where the platform runs on this machine."""
    for wrong in ({"TIP_PROFILE": "none"}, {"TIP_PORT": "eighty"}):
        answer = tip("doctor", "--json", **wrong)

        [check] = json.loads(answer.stdout)["data"]
        assert (answer.exit_code, check["name"], check["state"]) == (1, "configuration", "failed")


def test_a_wrong_setting_of_this_machine_is_a_line(tip: TipCaller, whole_platform: Platform) -> None:
    key = whole_platform.local["organizations"]["acme"]["api_keys"]["paper"]
    called = {"TIP_PROFILE": "", "TIP_URL": whole_platform.local["base_url"], "TIP_KEY": key}

    answer = tip("doctor", "--json", TIP_PORT="eighty", **called)

    last = json.loads(answer.stdout)["data"][-1]
    assert (answer.exit_code, last["name"], last["state"]) == (1, "processes", "failed")


def test_a_good_platform_has_nothing_to_do(tip: TipCaller) -> None:
    checks = tip.json("doctor")["data"]

    assert [check["state"] for check in checks] == ["ok"] * len(checks)
    names = [check["name"] for check in checks]
    assert names[:6] == ["configuration", "platform", "clock", "versions", "credential", "account"]
    assert "✓ clock within " in tip.done("doctor")


def test_a_platform_that_does_not_answer_is_exit_code_3(tip: TipCaller) -> None:
    answer = tip("doctor", TIP_PROFILE="", TIP_URL="http://127.0.0.1:9", TIP_KEY="k")

    assert answer.exit_code == 3 and "✗ platform: No answer" in answer.stdout and "tip status" in answer.stdout


def test_a_bad_key_and_a_disabled_account_fail(
    tip: TipCaller, whole_platform: Platform, own_account: str, tmp_path: Path
) -> None:
    bad = tip("doctor", TIP_PROFILE="", TIP_URL=whole_platform.local["base_url"], TIP_KEY="tip_paper_none")
    none = tip("doctor", TIP_PROFILE="", TIP_URL=whole_platform.local["base_url"])
    with whole_platform.admin() as admin:
        admin.accounts.disable(own_account, reason="audit")
    disabled = tip("doctor")

    assert bad.exit_code == 1 and "✗ credential: " in bad.stdout
    assert none.exit_code == 1 and "tip profiles add" in none.stdout
    assert disabled.exit_code == 1 and "is disabled: audit: an admin enables it" in disabled.stdout


@pytest.mark.parametrize("profile", ["demo-live", "demo-admin"])
def test_every_demo_caller_is_well(caller, profile: str) -> None:
    assert caller(profile)("doctor").exit_code == 0
