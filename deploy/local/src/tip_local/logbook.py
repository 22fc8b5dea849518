"""What all processes write, in one readable log and in one file each."""

import os
import threading
from logging import Formatter, LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import IO, TextIO

COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
OWN_NAME = "tip"
MERGED_NAME = "all"
FILE_BYTES = 20_000_000
LINE_BYTES = 64_000
NAME_WIDTH = 19
LAST_WORDS_SECONDS = 1.0


class LogBook:
    """Files `<name>.log` for each process and `all.log` for everything; each start begins anew and keeps one older."""

    def __init__(self, directory: Path, console: TextIO | None) -> None:
        directory.mkdir(mode=0o700, exist_ok=True)
        self.directory = directory
        self._console = console
        self._coloured = bool(console and console.isatty() and "NO_COLOR" not in os.environ)
        self._files: dict[str, RotatingFileHandler] = {}
        self._names: list[str] = []
        self._readers: list[threading.Thread] = []
        self._last_lines: dict[str, str] = {}
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """A line of the supervisor's own."""
        for line in text.splitlines() or [""]:
            self.write(OWN_NAME, line)

    def note(self, text: str) -> None:
        """For the supervisor's own file only: details that would bury the line that matters."""
        with self._lock:
            self._append(OWN_NAME, text)

    @property
    def own_file(self) -> Path:
        return self.directory / f"{OWN_NAME}.log"

    def show(self, text: str) -> None:
        """For the person at the terminal only, without a name in front."""
        with self._lock:
            self._print(text)

    def follow(self, name: str, stream: IO[bytes]) -> None:
        """Write what comes out of the stream, until its other end is closed."""
        reader = threading.Thread(target=self._pump, args=(name, stream), name=name, daemon=True)
        self._readers = [thread for thread in self._readers if thread.is_alive()] + [reader]
        reader.start()

    def last_words(self, name: str) -> str:
        """The last line of a process that has ended."""
        for reader in self._readers:
            if reader.name == name:
                reader.join(LAST_WORDS_SECONDS)
        return self._last_lines.get(name, "it wrote nothing")

    def close(self) -> None:
        """After the processes have ended: wait for their last words."""
        for reader in self._readers:
            reader.join(LAST_WORDS_SECONDS)
        for file in self._files.values():
            file.close()

    def write(self, name: str, line: str) -> None:
        with self._lock:
            self._last_lines[name] = line.strip() or self._last_lines.get(name, "")
            self._append(name, line)
            self._append(MERGED_NAME, f"{name:<{NAME_WIDTH}} | {line}")
            self._print(f"{self._heading(name)} | {line}")

    def _pump(self, name: str, stream: IO[bytes]) -> None:
        with stream:
            while piece := stream.readline(LINE_BYTES):
                self.write(name, piece.decode(errors="replace").rstrip("\r\n"))

    def _heading(self, name: str) -> str:
        padded = f"{name:<{NAME_WIDTH}}"
        if not self._coloured:
            return padded
        if name not in self._names:
            self._names.append(name)
        return f"\033[{COLOURS[self._names.index(name) % len(COLOURS)]}m{padded}\033[0m"

    def _append(self, name: str, line: str) -> None:
        if name not in self._files:
            self._files[name] = new_file(self.directory / f"{name}.log")
        self._files[name].emit(LogRecord(name, 0, "", 0, line, None, None))

    def _print(self, text: str) -> None:
        if self._console is None:
            return
        try:
            self._console.write(f"{text}\n")
            self._console.flush()
        except OSError:  # the terminal, or the pipe we were writing to, has gone; the files remain
            self._console = None


def new_file(path: Path) -> RotatingFileHandler:
    old = path.exists() and path.stat().st_size > 0
    handler = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", errors="replace")
    handler.setFormatter(Formatter("%(message)s"))
    if old:
        handler.doRollover()
    return handler
