"""Whoever reads what `tip` prints, or does not, changes nothing about what was done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TIP = (sys.executable, "-m", "tip.cli")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "tip" / "config.toml"
    file.parent.mkdir()
    file.write_text('[profiles."a\\u001b"]\nurl = "http://127.0.0.1:9"\nkey = "k"\n')
    file.chmod(0o600)
    return {"XDG_CONFIG_HOME": str(tmp_path), "TIP_HOME": str(tmp_path / "none")}


@pytest.mark.parametrize("words", ["profiles", "profiles --json", "profiles use a\x1b"])
def test_without_standard_output_a_command_is_done(environment: dict[str, str], words: str) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *TIP, *words.split(" ")]

    done = subprocess.run(closed, env=environment, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "exit_code"), [("profiles", 0), ("profiles --json", 0), ("doctor --profile a\x1b --json", 3)]
)
def test_a_reader_that_has_gone_changes_no_exit_code(environment: dict[str, str], words: str, exit_code: int) -> None:
    read, write = os.pipe()
    os.close(read)

    done = subprocess.run(
        [*TIP, *words.split(" ")], env=environment, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )

    os.close(write)
    assert (done.returncode, done.stderr) == (exit_code, "")


def test_what_the_encoding_does_not_have_is_replaced(environment: dict[str, str]) -> None:
    latin = {**environment, "PYTHONIOENCODING": "latin-1"}

    done = subprocess.run([*TIP, "profiles"], env=latin, capture_output=True, check=True)

    assert b" a? " in done.stdout
