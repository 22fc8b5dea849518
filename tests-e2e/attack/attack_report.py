"""The run in Markdown: what was tried, how often, and what was found."""

import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attack_findings import Findings
from attack_options import PARTS

NOTHING = "nothing gave way"


def summary(findings: Findings, seconds: float) -> list[str]:
    lines = [f"  {name}: {shown(value)}" for name, value in findings.counts.items()]
    verdict = f"{len(findings.found)} findings" if findings.found else NOTHING
    return [*lines, f"make attack: {verdict} after {seconds:.0f} s"]


def section(findings: Findings, part: str, counts: Mapping[str, Any], command: str, seconds: float) -> str:
    """What one part tried and found."""
    found = {rule: count for (of, rule), count in findings.by_rule().items() if of == part}
    lines = [
        f"### {part}, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`{command} --part {part}`; {os.cpu_count()} cores, Python {platform.python_version()}, {seconds:.0f} s.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {shown(value)} |" for name, value in counts.items()),
        f"| verdict | {f'{sum(found.values())} findings' if found else NOTHING} |",
        "",
        *(["| finding | how often |", "|---|---|"] if found else []),
        *(f"| {rule} | {count} |" for rule, count in found.items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(count)}" for name, count in value.items())
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def paste(path: Path, sections: Mapping[str, str]) -> None:
    """Between the document's two marks; a part that was not run keeps the section of its last run."""
    begin, end = "<!-- report -->", "<!-- /report -->"
    before, _, rest = path.read_text().partition(begin)
    old, _, after = rest.partition(end)
    kept = {part: text for part in PARTS for text in re.findall(rf"^### {part}, .*?(?=^### |\Z)", old, re.M | re.S)}
    merged = {part: text.strip() for part, text in (kept | dict(sections)).items()}
    shown_parts = "\n\n".join(merged[part] for part in PARTS if part in merged)
    path.write_text(f"{before}{begin}\n\n{shown_parts}\n\n{end}{after}")
