"""`tip` on a terminal of its own, as a person sees it and types there."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic

PATIENCE_S = 90.0
ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
CTRL_C = "\x03"
SIZE = {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50"}


class Terminal:
    """Everything that was drawn, in `shown`."""

    def __init__(self, process: subprocess.Popen[bytes], words: tuple[str, ...] = ()) -> None:
        self.process, self.words, self.shown = process, words, ""

    def see(self, *words: str, after: int = 0) -> str:
        """What is drawn from there on, once it holds all of these words."""
        deadline = monotonic() + PATIENCE_S
        while not all(word in self.shown[after:] for word in words):
            assert monotonic() < deadline and self._read(), f"{words} are not in {self.shown[after:]!r}"
        return self.shown[after:]

    def type(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def end(self) -> int:
        while self._read():
            pass
        return self.process.wait()

    def _read(self) -> bool:
        assert self.process.stdout is not None
        if not select([self.process.stdout], [], [], PATIENCE_S)[0]:
            return False
        piece = os.read(self.process.stdout.fileno(), 65_536)
        self.shown += piece.decode("utf-8", "replace")
        return bool(piece)


@contextmanager
def terminal(*words: str, environment: Mapping[str, str | None]) -> Iterator[Terminal]:
    """`tip` with these words; it is killed at the end if it still runs."""
    known = {name: value for name, value in environment.items() if value is not None}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [sys.executable, "-c", ON_A_TERMINAL, sys.executable, "-m", "tip.cli", *words]
    with subprocess.Popen(
        command, env={**SIZE, **known, "PATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Terminal(process, words)
        finally:
            process.kill()
