"""How much of everything a run does, and the command line that says so."""

import argparse
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Size:
    """How much of everything; `intents` or `seconds` says when the load ends."""

    intents: int | None
    seconds: float | None
    kills: int
    pauses: int
    flushes: int
    restarts: int
    traders: int
    accounts: int
    settle: float
    reconcile: float
    """Seconds between two comparisons of an account with its broker."""
    simple: int
    """How often, to some 58 others, an intent has no story but its own order: what costs least."""


SIZES = {
    "small": Size(None, 10, 8, 2, 1, 1, 8, 6, 45, 1, 42),
    "ten-minutes": Size(None, 480, 250, 60, 12, 12, 24, 24, 120, 1, 42),
    "full": Size(100_000, None, 1_000, 60, 50, 50, 32, 24, 240, 3, 900),
}


def arguments() -> tuple[argparse.Namespace, Size]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="ten-minutes")
    for name in ("intents", "kills", "pauses", "flushes", "restarts", "traders", "accounts", "simple"):
        parser.add_argument(f"--{name}", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None, help="of load")
    parser.add_argument("--seed", type=int, default=None, help="drawn if not given")
    parser.add_argument("--executors", type=int, default=2)
    parser.add_argument("--duplicates-accepted", action="store_true", help="the broker takes a client order id twice")
    parser.add_argument("--thirds", action="store_true", help="a third of the accounts each at paper, ccxt and FIX")
    parser.add_argument("--calm", action="store_true", help="a good line and a good broker: only the chosen faults")
    parser.add_argument("--report", type=Path, default=None, help="put the report into this Markdown file")
    parser.add_argument("--keep", action="store_true", help="leave logs and journals behind even if all went well")
    given = parser.parse_args()
    given.seed = random.SystemRandom().randrange(1, 1_000_000) if given.seed is None else given.seed
    chosen = {
        name: getattr(given, name) for name in asdict(SIZES[given.size]) if getattr(given, name, None) is not None
    }
    if "seconds" in chosen and "intents" not in chosen:
        chosen["intents"] = None
    return given, replace(SIZES[given.size], **chosen)


def command(given: argparse.Namespace, size: Size) -> str:
    """The exact command of this run."""
    words = [".venv/bin/python", "tests-e2e/fault/run.py", "--size", given.size, "--seed", str(given.seed)]
    for name, value in asdict(size).items():
        if name not in ("settle", "reconcile") and value != getattr(SIZES[given.size], name) and value is not None:
            words += [f"--{name}", f"{value:g}"]
    words += ["--executors", str(given.executors)] if given.executors != 2 else []
    words += ["--duplicates-accepted"] if given.duplicates_accepted else []
    words += ["--thirds"] if given.thirds else []
    words += ["--calm"] if given.calm else []
    return " ".join(words)
