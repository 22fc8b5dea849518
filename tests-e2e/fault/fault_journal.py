"""What the run itself has seen: every answer, every switched control, every fault, one JSON object a line."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Journal:
    """Nobody kills the run, so that what is written is not lost."""

    path: Path
    lines: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = self.path.open("a")

    def write(self, record: Mapping[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(record) + "\n")
            self.lines += 1

    def flush(self) -> None:
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def read(self) -> Iterator[dict[str, Any]]:
        self.flush()
        with self.path.open() as lines:
            for line in lines:
                yield json.loads(line)


@dataclass
class Journals:
    """One file for each kind of thing seen."""

    directory: Path

    def __post_init__(self) -> None:
        self.directory.mkdir(exist_ok=True)
        self.answers = Journal(self.directory / "answers.ndjson")
        self.controls = Journal(self.directory / "controls.ndjson")
        self.accounts = Journal(self.directory / "accounts.ndjson")
        self.faults = Journal(self.directory / "faults.ndjson")

    def flush(self) -> None:
        for journal in (self.answers, self.controls, self.accounts, self.faults):
            journal.flush()


def now() -> float:
    """Seconds of the wall clock, which every process of this machine shares."""
    return time.time()


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def sealed(record: Mapping[str, Any]) -> str:
    """A digest of everything in an action record that may never change: all but its derived state."""
    return digest({name: value for name, value in record.items() if name != "state"})
