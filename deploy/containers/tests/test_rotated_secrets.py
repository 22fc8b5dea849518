"""rotate.py on the secrets alone: whoever used a key before it was replaced can still open what it sealed."""

from pathlib import Path
from typing import Any

import pytest

from tip_local.home import Home
from tip_local.settings import Settings
from tip_local.stack import Stack

SIGNING, VAULT = "SIGNING_KEY_ENCRYPTION_KEY", "VAULT_KEY_ENCRYPTION_KEY"
VOLUMES = {SIGNING: ("signing",), VAULT: ("custody", "execution")}


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
