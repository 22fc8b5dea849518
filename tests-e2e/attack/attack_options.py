"""How much of everything a run does, and the command line that says so."""

import argparse
import random
from dataclasses import dataclass, replace
from pathlib import Path

PARTS = ("matrix", "fuzz", "tokens", "sockets", "streams", "fairness", "secrets")


@dataclass(frozen=True)
class Size:
    cells: int | None
    """Of the isolation matrix; None: all there are."""
    every_caller: bool
    """Or only the usual ones."""
    requests: int
    """Fuzzed by our own grammar."""
    examples: int
    """Of schemathesis, for every operation and way to generate."""
    operations: int | None
    """How many operations schemathesis is given; None: all."""
    tokens: int
    """Forged or mutated; API keys come beside them."""
    patience: float
    """Seconds to wait for a slow connection to be ended; cases that need longer are left out."""
    streams: int
    revocations: int
    samples: int
    """Requests of each kind whose latency is compared; 0: orderings only."""
    processes: int
    connections: int
    """Of each process that fuzzes or tries tokens."""


SIZES = {
    "small": Size(450, False, 800, 2, 1, 300, 0.0, 40, 2, 0, 1, 8),
    "ten-minutes": Size(9_000, True, 60_000, 10, None, 20_000, 75.0, 600, 4, 300, 2, 8),
    "full": Size(None, True, 1_000_000, 50, None, 101_000, 75.0, 5_000, 10, 1_000, 2, 8),
}
# What each part takes on two cores, as far as smaller runs say; for the estimate of the time left.
EXPECTED_S = {
    "small": (20, 8, 4, 11, 8, 12, 10),
    "ten-minutes": (100, 180, 80, 80, 30, 150, 20),
    "full": (330, 2_700, 360, 80, 120, 760, 150),
}


def expected_s(size: str, parts: list[str]) -> dict[str, float]:
    return {part: seconds for part, seconds in zip(PARTS, EXPECTED_S[size], strict=True) if part in parts}


def arguments() -> tuple[argparse.Namespace, Size]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=list(SIZES), default="ten-minutes")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this; may be given several times")
    parser.add_argument("--seed", type=int, default=None, help="drawn if not given")
    parser.add_argument("--case", default=None, help="only this case of the part, as a finding names it")
    for name in ("cells", "requests", "examples", "tokens", "streams", "samples"):
        parser.add_argument(f"--{name}", type=int, default=None)
    parser.add_argument("--findings", type=Path, default=None, help="write what was found into this JSON file, too")
    parser.add_argument(
        "--report", type=Path, default=None, help="replace the sections of the parts that ran in this Markdown file"
    )
    parser.add_argument("--running", action="store_true", help="attack the platform in TIP_HOME instead of a new one")
    parser.add_argument("--keep", action="store_true", help="leave the platform's home with its logs behind")
    given = parser.parse_args()
    given.seed = random.SystemRandom().randrange(1, 1_000_000) if given.seed is None else given.seed
    if given.case is not None and len(given.part or ()) != 1:
        parser.error("--case needs exactly one --part")
    if given.case is not None and given.report:
        parser.error("--report is of whole parts: leave --case out")
    chosen = {
        name: getattr(given, name) for name in Size.__dataclass_fields__ if getattr(given, name, None) is not None
    }
    return given, replace(SIZES[given.size], **chosen)


def command(given: argparse.Namespace, size: Size) -> str:
    """The exact command of this run, without its parts."""
    words = [".venv/bin/python", "tests-e2e/attack/run.py", "--size", given.size, "--seed", str(given.seed)]
    for name in Size.__dataclass_fields__:
        value = getattr(given, name, None)
        words += [f"--{name}", str(value)] if value is not None else []
    return " ".join(words)
