"""Which faults strike when: spread over the load, by chance, and written down with their moment."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fault_journal import Journal, now
from fault_stack import WEB_WORKER, Stack

# How often each is chosen; Postgres is killed by `restarts`.
KILLS = {
    "executor": 26, "relay": 10, WEB_WORKER: 10, "web": 2, "reconciler": 10, "gateway": 8, "consumer": 4, "paper": 7,
    "valkey": 5, "accounts-relay": 3, "accounts-consumer": 2, "controls-relay": 3, "controls-consumer": 1,
    "identity-relay": 1, "identity-scheduler": 1, "scheduler": 2, "signer": 2, "fix-gateway": 14, "fix-acceptor": 5,
}  # fmt: skip
PAUSES = {
    "executor": 30, "relay": 10, "web": 3, WEB_WORKER: 8, "reconciler": 12, "gateway": 6, "consumer": 2, "paper": 9,
    "valkey": 6, "postgres": 5, "accounts-relay": 3, "accounts-consumer": 1, "controls-relay": 2,
    "controls-consumer": 1, "scheduler": 2, "signer": 2, "fix-gateway": 8, "fix-acceptor": 4, "exchange": 4,
}  # fmt: skip
STOPS_EVERYTHING = ("postgres", "web")
SHORTEST_PAUSE, LONGEST_PAUSE = 3.0, 20.0
JUST_OVER_A_CLAIM = (5.0, 5.8)
"""A claim is taken back after five seconds: whoever wakes just then meets his successor at work."""
MOST_PAUSED_AT_ONCE = 3


@dataclass
class Plan:
    """How many of each, over the whole run."""

    kills: int
    pauses: int
    flushes: int
    restarts: int


@dataclass
class Schedule:
    """Called from the main thread, which starts every process."""

    on: Stack
    plan: Plan
    journal: Journal
    dice: random.Random
    done: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("kills", "pauses", "flushes", "restarts"), 0))

    def step(self, progress: float) -> None:
        """What is due by now; one of each kind at a time, so that the next can start before it is the next victim."""
        deeds: dict[str, Callable[[], None]] = {
            "kills": self._kill,
            "pauses": self._pause,
            "flushes": self._flush,
            "restarts": self._restart,
        }
        for name, deed in deeds.items():
            if self.done[name] + 0.5 < getattr(self.plan, name) * progress:
                deed()
        self.on.revive()
        # Those count too that killed themselves at a named step.
        self.done["kills"] = sum(self.on.kills.values()) - self.done["restarts"]

    def finish(self) -> None:
        """What the load left no time for, quickly, so that the numbers are those of the options."""
        while any(self.done[name] < getattr(self.plan, name) for name in ("kills", "flushes", "restarts")):
            self.step(2.0)
            time.sleep(0.05)

    def _kill(self) -> None:
        kind = self._drawn(KILLS)
        at = now()
        if self.on.kill(kind):
            self._note("kill", kind, at)

    def _pause(self) -> None:
        if len(self.on.freezer.kinds()) >= MOST_PAUSED_AT_ONCE:
            return
        kind = self._drawn(PAUSES)
        likely = SHORTEST_PAUSE if kind in STOPS_EVERYTHING else LONGEST_PAUSE / 2
        seconds = self.dice.triangular(SHORTEST_PAUSE, LONGEST_PAUSE, likely)
        if "relay" in kind and self.dice.random() < 0.5:
            seconds = self.dice.uniform(*JUST_OVER_A_CLAIM)
        at = now()
        if self.on.pause(kind, seconds):
            self._note("pause", kind, at, seconds=round(seconds, 1))
            self.done["pauses"] += 1

    def _flush(self) -> None:
        at = now()
        if self.on.flush():
            self._note("flush", "valkey", at)
            self.done["flushes"] += 1

    def _restart(self) -> None:
        at = now()
        self.on.restart_postgres()
        self._note("kill", "postgres", at, seconds=round(now() - at, 2))
        self.done["restarts"] += 1

    def _drawn(self, weights: dict[str, int]) -> str:
        here = {kind: weight for kind, weight in weights.items() if kind in self.on.kinds}
        return self.dice.choices(list(here), list(here.values()))[0]

    def _note(self, fault: str, kind: str, at: float, **more: float) -> None:
        self.journal.write({"fault": fault, "kind": kind, "at": at, **more})
