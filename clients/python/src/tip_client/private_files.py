"""Files in the user's configuration folder that hold secrets: whole or not at all, and for nobody else to read."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from tip_client.errors import ConfigurationError, ConnectionFailed

PATIENCE_S = 30.0
"""Longer than whoever holds a lock may wait for an answer."""
_POLL_S = 0.02


def write_private(file: Path, text: str) -> None:
    """With mode 0600, in a folder with mode 0700. A reader finds the old file or the new one."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=file.parent, prefix=f".{file.stem}-", delete=False) as written:  # mode 0600
        written.write(text)
        written.flush()
        os.fsync(written.fileno())
    os.replace(written.name, file)


def require_private(file: Path) -> None:
    if os.name == "posix" and file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(f"{file} holds credentials and others may read it: chmod 600 it.")


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Only one of all threads and processes is inside at a time; whoever dies inside lets the next one in."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _wait_for(descriptor)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise ConnectionFailed("Another process holds the lock of this login.", was_sent=False)
        time.sleep(_POLL_S)


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
