"""The run in Markdown: what was tried, how often, and what was found."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attack_findings import Findings

NOTHING = "nothing gave way"


def summary(findings: Findings, seconds: float) -> list[str]:
    lines = [f"  {name}: {shown(value)}" for name, value in findings.counts.items()]
    verdict = f"{len(findings.found)} findings" if findings.found else NOTHING
    return [*lines, f"make attack: {verdict} after {seconds:.0f} s"]


def report(findings: Findings, command: str, parts: list[str], seconds: float) -> str:
    found = findings.by_rule()
    lines = [
        f"### {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{command}`, parts {', '.join(parts)}; {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{seconds:.0f} s.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {shown(value)} |" for name, value in findings.counts.items()),
        f"| verdict | {f'{len(findings.found)} findings' if findings.found else NOTHING} |",
        "",
        *(["| part | finding | how often |", "|---|---|---|"] if found else []),
        *(f"| {part} | {rule} | {count} |" for (part, rule), count in found.items()),
    ]
    return "\n".join(lines) + "\n"


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(count)}" for name, count in value.items())
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def paste(path: Path, text: str) -> None:
    """Between the document's two marks."""
    begin, end = "<!-- report -->", "<!-- /report -->"
    before, _, rest = path.read_text().partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
