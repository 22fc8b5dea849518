"""pg_dump and pg_restore of the embedded Postgres, on the platform's database."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import unquote, urlsplit, urlunsplit

from tip.progress import bytes_progress
from tip_local.datastore import SYSTEM_ENVIRONMENT, reason
from tip_local.errors import Fault
from tip_local.stack import Stack, embedded_postgres

LOOK_S = 0.2


def dump(stack: Stack, file: Path) -> None:
    """Into a file that only its owner reads."""
    file.touch(mode=0o600)
    with file.open("wb") as opened:
        _run(stack, ["pg_dump", "--format=custom"], stdout=opened)


def restore_dump(stack: Stack, file: Path) -> None:
    """All of it or nothing; whoever restores owns everything, as whoever migrates does."""
    with file.open("rb") as opened:
        words = ["pg_restore", "--no-owner", "--single-transaction", "--exit-on-error"]
        _run(stack, words, stdin=opened)


def _run(stack: Stack, words: list[str], stdin: IO[bytes] | None = None, stdout: IO[bytes] | None = None) -> None:
    """The program on the platform's database; how far it has come in the file is the progress."""
    program, *options = words
    place, environment = _address(stack.admin_url)
    binary = embedded_postgres(stack.settings, stack.home, stack.home.remembered_port).binary(program)
    command = [str(binary), "--no-password", f"--dbname={place}", *options]
    with TemporaryFile() as errors:
        with subprocess.Popen(command, env=environment, stdin=stdin, stdout=stdout, stderr=errors) as process:
            _watch(process, program, stdin or stdout)
        if process.returncode:
            errors.seek(0)
            raise Fault(f"{program} failed: {reason(errors.read().decode(errors='replace'))}")


def _address(url: str) -> tuple[str, dict[str, str]]:
    """Where the database is, and the password apart from it: a command line can be read by others."""
    address = urlsplit(url)
    place = address._replace(netloc=f"{address.username}@{address.netloc.rpartition('@')[2]}")
    return urlunsplit(place), {**SYSTEM_ENVIRONMENT, "PGPASSWORD": unquote(address.password or "")}


def _watch(process: subprocess.Popen[bytes], what: str, file: IO[bytes] | None) -> None:
    """Until it has ended. Both have the file open as one, so its place there is known here."""
    seen = 0
    with bytes_progress(what) as advance:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_S)
            place = os.lseek(file.fileno(), 0, os.SEEK_CUR) if file else 0
            advance(place - seen)
            seen = place
