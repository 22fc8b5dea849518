"""One way to measure: reference and subject in alternating pairs in one run, medians, and their ratio.

A figure alone says more about the machine than about the code, so what we claim is always a ratio to something measured
in the same run. `report` prints it and keeps it in bench/README.md. Where a machine is virtual, its host gives the
processors to others for seconds at a time: what was measured then is measured again (`undisturbed`).
"""

import platform
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

README = Path(__file__).with_name("README.md")
MOST_STOLEN = 0.04
"""Of the processors' time, by the host, while something is measured that counts."""
TRIES = 20
Measure = Callable[[], float]
T = TypeVar("T")


@dataclass(frozen=True)
class Ratio:
    """What a run of pairs found. `goal` is the least acceptable ratio, or the most when `at_most`."""

    name: str
    unit: str
    reference: float
    subject: float
    spread: float
    goal: float | None = None
    at_most: bool = False

    @property
    def ratio(self) -> float:
        return self.subject / self.reference

    @property
    def met(self) -> str:
        if self.goal is None:
            return ""
        met = self.ratio <= self.goal if self.at_most else self.ratio >= self.goal
        return "yes" if met else "NO"


def pairs(
    name: str, reference: Measure, subject: Measure, *, unit: str, count: int = 5, goal: float | None = None,
    at_most: bool = False,
) -> Ratio:  # fmt: skip
    """Measure in pairs and take the medians; the spread is that of the pairs' own ratios.

    Reference and subject take turns in going first: what the first leaves behind, the second pays for.
    """
    references: list[float] = []
    subjects: list[float] = []
    for number in range(1, count + 1):
        for measure, found in ((reference, references), (subject, subjects))[:: 1 if number % 2 else -1]:
            found.append(measure())
        print(f"  {name} pair {number}/{count}: reference {references[-1]:,.1f}, subject {subjects[-1]:,.1f} {unit}")
    ratios = [subject / reference for subject, reference in zip(subjects, references, strict=True)]
    spread = max(ratios) - min(ratios)
    return Ratio(name, unit, statistics.median(references), statistics.median(subjects), spread, goal, at_most)


def undisturbed(measure: Callable[[], T]) -> T:
    """What it found while the host took no more than a little of the processors; so often it is measured again."""
    for _ in range(TRIES):
        before = _processor_time()
        found = measure()
        stolen, total = (now - then for now, then in zip(_processor_time(), before, strict=True))
        if stolen <= MOST_STOLEN * total:
            return found
        print(f"  measured again: the host took {100 * stolen / total:.0f} % of the processors", flush=True)
    sys.exit(f"bench: the host takes more than {100 * MOST_STOLEN:.0f} % of the processors: try again later")


def _processor_time() -> tuple[int, int]:
    """What the host took and all there was, in ticks since the start; nothing where there is no Linux to say so."""
    try:
        _, *ticks = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    except OSError:
        return 0, 0
    return int(ticks[7]), sum(map(int, ticks[:8]))


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def report(title: str, ratios: Sequence[Ratio], *, versions: Sequence[str], command: str, notes: str = "") -> None:
    """Print the table and keep it in bench/README.md in place of the same benchmark's earlier one."""
    lines = [
        f"## {title}",
        "",
        f"`{command}`, {datetime.now(UTC):%Y-%m-%d}, {machine()}, {', '.join(_version(name) for name in versions)}",
        "",
        "| what | reference | subject | unit | ratio | spread | goal | met |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for ratio in ratios:
        goal = "" if ratio.goal is None else f"{'<=' if ratio.at_most else '>='} {ratio.goal}"
        lines.append(
            f"| {ratio.name} | {ratio.reference:,.1f} | {ratio.subject:,.1f} | {ratio.unit} | {ratio.ratio:.2f} "
            f"| {ratio.spread:.2f} | {goal} | {ratio.met} |"
        )
    lines += ["", notes, ""] if notes else [""]
    section = "\n".join(lines)
    print("\n" + section)
    keep(title, section)


def keep(title: str, section: str) -> None:
    text = README.read_text() if README.exists() else "# Benchmarks\n\n"
    start = text.find(f"## {title}\n")
    if start < 0:
        README.write_text(text.rstrip("\n") + "\n\n" + section)
        return
    end = text.find("\n## ", start + 1)
    README.write_text(text[:start] + section + (text[end:] if end >= 0 else ""))


def _version(name: str) -> str:
    return f"Python {platform.python_version()}" if name == "python" else f"{name} {version(name)}"


def machine() -> str:
    cores = subprocess.run(["getconf", "_NPROCESSORS_ONLN"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{cores} cores, {platform.machine()}, {platform.system()}"


@contextmanager
def meanwhile(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """Something else goes on in a thread while the block lasts: until the event is set."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def tool(name: str, hint: str) -> str:
    """The path of a program the benchmark needs, or a clear line and exit."""
    found = subprocess.run(["/bin/sh", "-c", f"command -v {name}"], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"bench: {name} is needed: {hint}")
    return found.stdout.strip()
