"""The run in Markdown: what was done, what was found, and how long each kind of fault kept orders waiting."""

import os
import platform
from bisect import bisect_left
from collections import defaultdict
from datetime import UTC, datetime
from statistics import median
from typing import Any

from fault_checker import GOOD, Verdict
from fault_evidence import Evidence

ACCEPTED = ("ACCEPTED", "PARTIALLY_FILLED", "FILLED")


def report(verdict: Verdict, evidence: Evidence, command: str, seed: int) -> str:
    found = verdict.findings.by_rule()
    lines = [
        f"### {datetime.now(UTC):%Y-%m-%d}, seed {seed}",
        "",
        f"`{command}`, {os.cpu_count()} cores, Python {platform.python_version()}.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {_shown(value)} |" for name, value in verdict.facts.items()),
        f"| verdict | {GOOD if verdict.good else f'{len(verdict.findings.found)} findings'} |",
        "",
        *(["| finding | how often |", "|---|---|"] if found else []),
        *(f"| {rule} | {len(findings)} |" for rule, findings in found.items()),
        *([""] if found else []),
        "From a fault to the next intent that was submitted after it and is ACCEPTED, in seconds; faults overlap, so",
        "some of these had others to wait for as well:",
        "",
        "| fault | how often | median | worst |",
        "|---|---|---|---|",
        *(
            f"| {fault} | {len(seconds)} | {median(seconds):.1f} | {max(seconds):.1f} |"
            for fault, seconds in sorted(recoveries(evidence).items())
        ),
    ]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {count}" for name, count in value.items())
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def recoveries(evidence: Evidence) -> dict[str, list[float]]:
    """By fault and process: how long until the next intent submitted afterwards was ACCEPTED."""
    rows = evidence.rows(
        """
        SELECT extract(epoch FROM created_at)::float8 AS created, extract(epoch FROM accepted_at)::float8 AS accepted
        FROM intents.intent WHERE accepted_at IS NOT NULL ORDER BY created_at
        """
    )
    created = [row["created"] for row in rows]
    soonest: list[float] = []
    best = float("inf")
    for row in reversed(rows):
        best = min(best, row["accepted"])
        soonest.append(best)
    soonest.reverse()
    found: dict[str, list[float]] = defaultdict(list)
    for fault in evidence.journals.faults.read():
        place = bisect_left(created, fault["at"])
        if place < len(soonest):
            found[f"{fault['fault']} {fault['kind']}"].append(soonest[place] - fault["at"])
    return dict(found)
