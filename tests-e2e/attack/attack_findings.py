"""What was found wrong, with what reproduces it, and what was counted."""

import shlex
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

SHOWN_PER_RULE = 5
DETAIL = 400


@dataclass(frozen=True)
class Finding:
    part: str
    rule: str
    """What is broken, as a sentence; findings are grouped by it."""
    case: str | None
    """Names the case within its part, for `--case`; None: only the whole part shows it."""
    detail: str


@dataclass
class Findings:
    found: list[Finding] = field(default_factory=list)
    counts: dict[str, Any] = field(default_factory=dict)
    only: str | None = None
    """The one case that this run is about."""
    _met: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def chosen(self, case: str) -> bool:
        """Whether this run is about the case. Every case calls it, so that an unknown case is noticed."""
        if self.only not in (None, case):
            return False
        self._met = True
        return True

    @property
    def case_exists(self) -> bool:
        return self.only is None or self._met

    def add(self, part: str, rule: str, case: str | None, detail: str) -> None:
        if case is not None and not self.chosen(case):
            return
        with self._lock:
            self.found.append(Finding(part, rule, case, " ".join(detail.split())[:DETAIL]))

    def count(self, name: str, more: int = 1) -> None:
        with self._lock:
            self.counts[name] = self.counts.get(name, 0) + more

    def note(self, name: str, value: Any) -> None:
        with self._lock:
            self.counts[name] = value

    def rules(self) -> list[str]:
        return [finding.rule for finding in self.found]

    def by_rule(self) -> Counter[tuple[str, str]]:
        return Counter((finding.part, finding.rule) for finding in self.found)

    def lines(self, command: str) -> list[str]:
        """For people: each rule that is broken, some of its cases, and the command for each."""
        shown: list[str] = []
        for (part, rule), count in self.by_rule().items():
            shown.append(f"  {part}: {rule} ({count})")
            cases = [finding for finding in self.found if (finding.part, finding.rule) == (part, rule)]
            for finding in cases[:SHOWN_PER_RULE]:
                shown.append(f"    {finding.case or 'the whole part'}: {finding.detail}")
                repeated = f" --case {shlex.quote(finding.case)}" if finding.case is not None else ""
                shown.append(f"      {command} --part {part}{repeated}")
        return shown
