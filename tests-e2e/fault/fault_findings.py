"""What the checker finds."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


class Lazily:
    """A detail that is only put into words when it is needed."""

    def __init__(self, words: Callable[[], str]) -> None:
        self._words = words

    def __str__(self) -> str:
        return self._words()


@dataclass(frozen=True)
class Finding:
    """One thing that is not as the contract says."""

    rule: str
    account: str | None
    intent: str | None
    detail: str

    def __str__(self) -> str:
        place = " ".join(
            f"{name} {value}" for name, value in (("account", self.account), ("intent", self.intent)) if value
        )
        return f"{place}: {self.detail}" if place else self.detail


@dataclass
class Findings:
    """`about` gives the same list for a narrower subject."""

    found: list[Finding] = field(default_factory=list)
    account: str | None = None
    intent: str | None = None

    def about(self, account: str | None, intent: str | None = None) -> "Findings":
        return Findings(self.found, account, intent)

    def add(self, rule: str, detail: object = "") -> None:
        self.found.append(Finding(rule, self.account, self.intent, str(detail)))

    def expect(self, holds: bool, rule: str, detail: object = "") -> None:
        if not holds:
            self.add(rule, detail)

    def by_rule(self) -> dict[str, list[Finding]]:
        grouped: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.found:
            grouped[finding.rule].append(finding)
        return dict(sorted(grouped.items(), key=lambda item: -len(item[1])))
