"""rotate.py on the secrets alone: whoever used a key before it was replaced can still open what it sealed."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tip_local.home import Home
from tip_local.settings import Settings
from tip_local.stack import Stack

CONTAINERS = Path(__file__).resolve().parents[1]


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """rotate.py and prepare.py, which find each other by standing in one folder."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(CONTAINERS)
    yield {name: import_module(name) for name in ("rotate", "prepare")}
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(CONTAINERS)):
            del sys.modules[name]


@pytest.fixture
def kept(tmp_path: Path) -> dict[str, str]:
    return Home(tmp_path).secrets()


def keys_of(scripts: Any, tmp_path: Path, secrets: dict[str, str], service: str) -> tuple[str, str | None]:
    """The key that the service seals with, and the one that it still opens with."""
    stack = Stack(Settings.from_env(), Home(tmp_path), secrets, "postgresql://tip:x@postgres/tip", "redis://redis")
    [given] = [env for folder, env in scripts["prepare"].environments(stack).items() if folder.name == service]
    return given["KEY_ENCRYPTION_KEY"], given.get("EARLIER_KEY_ENCRYPTION_KEYS")


def test_a_new_key_for_signing_keys_comes_beside_the_old_one_and_leaves_brokers_secrets_alone(
    scripts: Any, tmp_path: Path, kept: dict[str, str]
) -> None:
    rotated = scripts["rotate"].rotated
    old = kept["key_encryption_key"]

    begun = rotated(kept, ["signing-key-key"])
    new = begun["key_encryption_key"]
    ended = rotated(begun, ["signing-key-key-end"])

    assert new != old
    assert keys_of(scripts, tmp_path, begun, "identity") == (new, old)
    assert keys_of(scripts, tmp_path, ended, "identity") == (new, None)
    for secrets in (kept, begun, ended):
        assert keys_of(scripts, tmp_path, secrets, "accounts") == (old, None)
        assert keys_of(scripts, tmp_path, secrets, "execution") == (old, None)


def test_each_key_is_replaced_without_the_other(scripts: Any, tmp_path: Path, kept: dict[str, str]) -> None:
    rotated = scripts["rotate"].rotated
    both = rotated(rotated(kept, ["vault-key"]), ["signing-key-key"])
    old = kept["key_encryption_key"]

    (signing, before_signing), (vault, before_vault) = (
        keys_of(scripts, tmp_path, both, service) for service in ("identity", "accounts")
    )
    assert len({signing, vault, old}) == 3
    assert (before_signing, before_vault) == (old, old)


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
