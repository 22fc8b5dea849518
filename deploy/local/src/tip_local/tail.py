"""Reading log files from their end."""

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

POLL_SECONDS = 0.2


def last_lines(file: Path, count: int, containing: str = "") -> list[str]:
    if not file.exists():
        return []
    with file.open(errors="replace") as lines:
        return [line.rstrip("\n") for line in deque((line for line in lines if containing in line), maxlen=count)]


def follow(file: Path) -> Iterator[str]:
    """What is appended from now on, also after the file was replaced by a new one of the same name."""
    stream = file.open(errors="replace")
    stream.seek(0, 2)
    while True:
        if piece := stream.readline():
            yield piece
        elif file.exists() and file.stat().st_ino != os.fstat(stream.fileno()).st_ino:
            stream.close()
            stream = file.open(errors="replace")
        else:
            time.sleep(POLL_SECONDS)
