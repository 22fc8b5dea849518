"""`tip backup` of a running platform, and `tip restore` into an empty installation."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tip_caller import TipCaller

from tip_testing.servers_plugin import new_directory

WAIT = ("--wait", "--timeout", "90")
EMPTY = hashlib.sha256(b"").hexdigest()


@pytest.fixture
def home() -> Iterator[Path]:
    """An installation that is empty; the paths of sockets have to be short."""
    made = new_directory("tip-")
    yield made / "home"
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def restored(tip: TipCaller, home: Path) -> TipCaller:
    """`tip` for that installation."""
    return TipCaller(tip.environment | {"TIP_HOME": str(home)})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A backup as it is written, of a database that holds nothing."""
    folder = tmp_path / "saved"
    folder.mkdir()
    (folder / "tip.dump").write_bytes(b"")
    (folder / "secrets.json").write_text("{}")
    sums = {"tip.dump": EMPTY, "secrets.json": hashlib.sha256(b"{}").hexdigest()}
    change(folder, format=1, created_at="2026-01-05T12:00:00+00:00", version="9.9", postgres="18.1", log_epoch="e",
           migrations={"intents": "0001"}, sha256=sums)  # fmt: skip
    return folder


def change(folder: Path, **values: Any) -> None:
    file = folder / "manifest.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | values))


@pytest.mark.timeout(600)
def test_a_backup_is_restored_with_its_log_under_a_new_epoch(
    tip: TipCaller, restored: TipCaller, own_account: str, symbol: str, tmp_path: Path
) -> None:
    tip.done("buy", symbol, "1", *WAIT)
    made = tip.json("backup", str(tmp_path / "saved"))
    shutil.move(tmp_path / "saved" / "secrets.json", tmp_path / "apart.json")

    back = restored.json("restore", str(tmp_path / "saved"), "--secrets", str(tmp_path / "apart.json"))

    assert (made["folder"], made["format"], back["created_at"]) == (str(tmp_path / "saved"), 1, made["created_at"])
    assert back["log_epoch"] != made["log_epoch"]
    epochs = [line.split()[0] for line in restored.done("epoch", "list").splitlines()[1:]]
    assert epochs[-2:] == [made["log_epoch"], back["log_epoch"]]
    assert " entries verified, up to sequence " in restored.done("verify", "--account", own_account)
    assert (tmp_path / "saved").stat().st_mode & 0o777 == 0o700
    again = restored("restore", str(tmp_path / "saved"), "--secrets", str(tmp_path / "apart.json"))
    assert again.exit_code == 1 and "is not empty" in again.stderr and "TIP_HOME" in again.stderr
    refused = tip("backup", str(tmp_path / "saved"))
    assert refused.exit_code == 1 and "never written over" in refused.stderr


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"format": 2}, "newer version of tip"),
        ({"migrations": {"intents": "9999"}}, "install that version or a newer one"),
        ({"migrations": {"settlement": "0001"}}, "install that version or a newer one"),
        ({"sha256": {"tip.dump": "0", "secrets.json": EMPTY}}, "checksum differs"),
    ],
    ids=str,
)
def test_what_cannot_be_restored_leaves_no_installation(
    restored: TipCaller, home: Path, saved: Path, values: dict[str, Any], said: str
) -> None:
    change(saved, **values)

    refused = restored("restore", str(saved))

    assert refused.exit_code == 1 and said in refused.stderr
    assert not home.exists()


def test_a_folder_that_is_no_backup_is_refused(restored: TipCaller, home: Path, tmp_path: Path) -> None:
    refused = restored("restore", str(tmp_path))

    assert refused.exit_code == 1 and "has no manifest.json" in refused.stderr and not home.exists()


def test_secrets_that_were_kept_apart_are_missed(restored: TipCaller, home: Path, saved: Path) -> None:
    (saved / "secrets.json").unlink()

    refused = restored("restore", str(saved))

    assert refused.exit_code == 1 and "--secrets" in refused.stderr and not home.exists()


@pytest.mark.timeout(600)
def test_a_restore_that_fails_leaves_the_installation_empty(restored: TipCaller, home: Path, saved: Path) -> None:
    refused = restored("restore", str(saved))

    assert refused.exit_code == 1 and "pg_restore failed" in refused.stderr
    assert not (home / "secrets.json").exists() and not (home / "postgres").exists()
