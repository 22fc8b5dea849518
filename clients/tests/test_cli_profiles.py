"""`tip profiles` keeps the file that the SDK reads."""

import stat
from pathlib import Path

import pytest
from tip_caller import TipCaller

import tip_client

ACCOUNT = "9202138f-45bd-58e2-a0ad-e3575587932f"


@pytest.fixture
def tip(tmp_path: Path) -> TipCaller:
    return TipCaller({"XDG_CONFIG_HOME": str(tmp_path), "TIP_HOME": str(tmp_path / "none")})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tip" / "config.toml"


def settings(folder: Path, profile: str | None = None) -> tip_client.Settings:
    return tip_client.Settings.from_env(profile, {"XDG_CONFIG_HOME": str(folder)})


def test_a_profile_that_is_added_is_the_sdk_s(tip: TipCaller, tmp_path: Path, file: Path) -> None:
    tip.done("profiles", "add", "paper", "--url", "https://tip.example", "--account", ACCOUNT, stdin="tip_paper_x\n")

    found = settings(tmp_path)

    assert (found.url, found.key, found.account) == ("https://tip.example", "tip_paper_x", ACCOUNT)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_new_key_goes_where_the_former_one_went(tip: TipCaller, tmp_path: Path, file: Path) -> None:
    tip.done("profiles", "add", "paper", "--url", "https://tip.example", stdin="old\n")
    file.write_text(file.read_text() + 'events_url = "https://events.example"\n')
    tip.done("profiles", "add", "paper", stdin="new\n")

    kept = settings(tmp_path)
    tip.done("profiles", "add", "paper", "--url", "https://other.example", stdin="newer\n")
    moved = settings(tmp_path)

    assert (kept.url, kept.events_url, kept.key) == ("https://tip.example", "https://events.example", "new")
    assert (moved.url, moved.events_url, moved.key) == ("https://other.example", None, "newer")


def test_an_authority_is_found_from_every_folder(
    tip: TipCaller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").touch()
    monkeypatch.chdir(tmp_path)

    tip.done("profiles", "add", "paper", "--ca", "ca.crt", stdin="k\n")

    assert settings(tmp_path).ca == str(tmp_path / "ca.crt")


def test_profiles_of_the_demo_data_are_listed_in_order(tip: TipCaller, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    described = tmp_path / "none" / "local.json"
    described.write_text("{}")
    assert tip.json("profiles")["data"] == [], "without demo data"
    described.write_text('{"organizations": {}}')

    assert [entry["name"] for entry in tip.json("profiles")["data"]] == ["demo", "demo-admin", "demo-live"]


def test_the_default_is_chosen_and_removed(tip: TipCaller, tmp_path: Path) -> None:
    tip.done("profiles", "add", "paper", stdin="a\n")
    tip.done("profiles", "add", "robot", "--token", "--organization", "acme", stdin="t\n")
    tip.done("profiles", "use", "robot")

    assert (settings(tmp_path).token, settings(tmp_path, "paper").key) == ("t", "a")
    listed = tip.json("profiles")["data"]
    assert [(entry["name"], entry["credential"], entry["default"]) for entry in listed] == [
        ("paper", "key", False), ("robot", "token", True),
    ]  # fmt: skip
    tip.done("profiles", "remove", "robot")
    assert settings(tmp_path).token is None and len(tip.json("profiles")["data"]) == 1


def test_what_was_written_by_hand_stays(tip: TipCaller, file: Path) -> None:
    file.parent.mkdir()
    file.write_text('# mine\ndefault = "a"\n\n[profiles.a]\nkey = "k" # the old one\n')
    file.chmod(0o600)

    tip.done("profiles", "add", "b", stdin="x\n")

    assert "# mine" in file.read_text() and "# the old one" in file.read_text() and "[profiles.b]" in file.read_text()


def test_a_credential_is_never_shown(tip: TipCaller) -> None:
    tip.done("profiles", "add", "paper", stdin="tip_paper_secret\n")

    assert "secret" not in tip.done("profiles") + tip.done("profiles", "list", "--json")


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["use", "none"], None),
        (["remove", "none"], None),
        (["add", "x"], ""),
        (["add", "x", "--account", "name"], "k\n"),
        (["add", "x", "--url", "ftp://x"], "k\n"),
        (["add", "x"], "k\x01y\n"),
    ],
)
def test_what_is_wrong_changes_nothing(tip: TipCaller, file: Path, words: list[str], stdin: str | None) -> None:
    answer = tip("profiles", *words, stdin=stdin)

    assert (answer.exit_code, file.exists()) == (2, False)


def test_a_file_that_cannot_be_read_is_named(tip: TipCaller, file: Path) -> None:
    file.parent.mkdir()
    file.write_text("default = [")

    answer = tip("profiles")

    assert answer.exit_code == 2 and str(file) in answer.stderr
