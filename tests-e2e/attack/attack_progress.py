"""How far a run has come, printed from time to time, with an estimate of the time that is left."""

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

EVERY_S = 20.0
FIRST = 0.005
"""The part of the work from which on an estimate says something."""


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@dataclass
class Progress:
    expected_s: Mapping[str, float] = field(default_factory=dict)
    """By part, in the order in which they run: what each took when it was last measured."""
    part: str = ""
    _began: float = 0.0
    _said: float = 0.0

    def begin(self, part: str) -> None:
        self.part = part
        self._began = self._said = time.monotonic()

    def at(self, done: int, total: int) -> None:
        """Of the present part so many are done. Says so, unless it has just done that."""
        now = time.monotonic()
        if not done or done < FIRST * total or now - self._said < EVERY_S:
            return
        self._said = now
        say(self.line(done, total, now - self._began))

    def line(self, done: int, total: int, elapsed_s: float) -> str:
        part_s = elapsed_s / done * (total - done)
        names = list(self.expected_s)
        later = names[names.index(self.part) + 1 :] if self.part in names else []
        all_s = part_s + sum(self.expected_s[name] for name in later)
        counted = f"{done:,} of {total:,}".replace(",", " ")
        left = f"{duration(part_s)} left, {duration(all_s)} in all"
        return f"  {self.part}: {counted}, {done / elapsed_s:.3g} a second; about {left}"
