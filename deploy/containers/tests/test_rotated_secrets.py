"""rotate.py on the secrets alone: whoever used a key before it was replaced can still open what it sealed."""

from pathlib import Path
from typing import Any

import pytest

from tip_local.home import KEYS, Home
from tip_local.settings import Settings
from tip_local.stack import Stack

SIGNING, VAULT = "SIGNING_KEY_ENCRYPTION_KEY", "VAULT_KEY_ENCRYPTION_KEY"
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text()
# What rotate.py calls each of the platform's own keys.
ROTATIONS = {
    SIGNING.lower(): "signing-key-key",
    VAULT.lower(): "vault-key",
    "cursor_key": "cursor-key",
    "log_signing_key": "log-signing-key",
}
VOLUMES = {SIGNING: ("identity_web",), VAULT: ("accounts_web", "custody", "execution")}


def keys_of(scripts: Any, tmp_path: Path, secrets: dict[str, str], key: str) -> tuple[str, str | None]:
    """The key that is sealed with, and the one that still opens, which all who hold it are given alike."""
    stack = Stack(Settings.from_env(), Home(tmp_path), secrets, "postgresql://tip:x@postgres/tip", "redis://redis")
    given = {folder.name: env for folder, env in scripts["prepare"].environments(stack).items()}
    [found] = {(given[volume][key], given[volume].get(f"EARLIER_{key}S")) for volume in VOLUMES[key]}
    return found


@pytest.mark.parametrize(("what", "key", "other"), [("signing-key-key", SIGNING, VAULT), ("vault-key", VAULT, SIGNING)])
def test_a_new_key_comes_beside_the_old_one_and_leaves_the_other_key_alone(
    scripts: Any, tmp_path: Path, kept: dict[str, str], what: str, key: str, other: str
) -> None:
    rotated = scripts["rotate"].rotated
    (old, _), untouched = keys_of(scripts, tmp_path, kept, key), keys_of(scripts, tmp_path, kept, other)

    begun = rotated(kept, [what])
    new, before = keys_of(scripts, tmp_path, begun, key)
    ended = rotated(begun, [f"{what}-end"])

    assert before == old != new
    assert keys_of(scripts, tmp_path, ended, key) == (new, None)
    for secrets in (begun, ended):
        assert keys_of(scripts, tmp_path, secrets, other) == untouched


def test_signing_keys_and_brokers_secrets_never_share_a_key(scripts: Any, tmp_path: Path, kept: dict[str, str]) -> None:
    rotated = scripts["rotate"].rotated
    both = rotated(rotated(kept, ["vault-key"]), ["signing-key-key"])

    used = [
        key
        for secrets in (kept, both)
        for name in (SIGNING, VAULT)
        for key in keys_of(scripts, tmp_path, secrets, name)
    ]
    assert len(set(used)) == 5, "two of each, and None where no rotation is under way"


def test_a_rotation_that_has_not_ended_is_not_begun_again(scripts: Any, kept: dict[str, str]) -> None:
    for what in ("signing-key-key", "vault-key"):
        begun = scripts["rotate"].rotated(kept, [what])
        with pytest.raises(SystemExit, match="has not ended"):
            scripts["rotate"].rotated(begun, [what])


def test_prepare_makes_the_password_of_redis_once_and_hands_it_to_those_who_use_it(
    scripts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, home = tmp_path / "run", tmp_path / "home"
    for name in ("postgres", "redis", "certificate"):
        (folder / name).mkdir(parents=True)
    for module in (scripts["prepare"], scripts["rotate"]):
        monkeypatch.setattr(module, "FOLDER", folder)
    monkeypatch.setattr(scripts["prepare"].certificate, "ensure", lambda at: (at / "ca.crt").write_text("made"))
    monkeypatch.setenv("TIP_HOME", str(home))
    monkeypatch.delenv("REDIS_URL", raising=False)

    def handed_out() -> tuple[str, set[str]]:
        scripts["prepare"].main()
        password = (folder / "redis" / "password").read_text()
        assert (folder / "redis" / "redis.conf").read_text() == f"requirepass {password}\n"
        return password, {file.read_text() for file in (*folder.rglob("REDIS_URL"), *home.rglob("REDIS_URL"))}

    password, urls = handed_out()
    assert len(password) >= 32 and urls == {f"redis://:{password}@redis:6379/0"}
    assert handed_out() == (password, urls)

    scripts["rotate"].rotated(Home(home).secrets(), ["redis-password"])
    another, urls = handed_out()
    assert another != password and urls == {f"redis://:{another}@redis:6379/0"}


@pytest.mark.parametrize("key", KEYS)
def test_every_key_of_the_platform_can_be_replaced(
    scripts: Any, tmp_path: Path, kept: dict[str, str], key: str
) -> None:
    what = ROTATIONS[key]

    new = scripts["rotate"].rotated(kept, [what])

    stack = Stack(Settings.from_env(), Home(tmp_path), new, "postgresql://tip:x@postgres/tip", "redis://redis")
    handed_out = {given.get(key.upper()) for given in scripts["prepare"].environments(stack).values()} - {None}
    assert [name for name in kept if new[name] != kept[name]] == [key]
    assert handed_out == {new[key]}
    assert f"\n  {what} " in scripts["rotate"].USAGE and f"`rotate {what}`" in PAGE


def test_the_operators_token_of_the_paper_broker_goes_to_the_paper_broker_alone(
    scripts: Any, tmp_path: Path, kept: dict[str, str]
) -> None:
    new = scripts["rotate"].rotated(kept, ["paper-broker-token"])
    stack = Stack(Settings.from_env(), Home(tmp_path), new, "postgresql://tip:x@postgres/tip", "redis://redis")
    token = new["paper_broker_operator_token"]

    assert token != kept["paper_broker_operator_token"]
    holders = [
        folder.name for folder, given in scripts["prepare"].environments(stack).items() if token in given.values()
    ]
    assert holders == ["paper_broker"]
