"""What was claimed, and what was found of it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tip_brokers import BrokerDescription, Capabilities
from tip_testing.broker_check.plugin import FAILED, PASSED, SKIPPED, FactResult
from tip_testing.broker_check.selection import CLAIMS, EVERY_ADAPTER

KEPT, NOT_KEPT, NOT_CLAIMED, NOT_CHECKED = "kept", "not kept", "not claimed", "not checked"
_MARKS = {PASSED: "ok  ", FAILED: "FAIL", SKIPPED: "skip"}


@dataclass(frozen=True)
class ClaimResult:
    claim: str
    claimed: str | None
    """As text; None if the broker does not claim it."""
    facts: Sequence[FactResult]

    @property
    def result(self) -> str:
        found = {fact.result for fact in self.facts}
        if FAILED in found:
            return NOT_KEPT
        if self.claimed is None:
            return NOT_CLAIMED
        return KEPT if PASSED in found else NOT_CHECKED


@dataclass(frozen=True)
class Report:
    broker: str
    title: str
    place: str
    claims: Sequence[ClaimResult]

    @property
    def not_kept(self) -> list[str]:
        return [claim.claim for claim in self.claims if claim.result == NOT_KEPT]

    @property
    def facts(self) -> list[FactResult]:
        return [fact for claim in self.claims for fact in claim.facts]


def make_report(
    broker: BrokerDescription,
    place: str,
    facts: Iterable[FactResult],
    chosen: Sequence[str] = (),
) -> Report:
    shown = list(facts)
    names = [name for name in (*CLAIMS, *EVERY_ADAPTER) if not chosen or name in chosen]
    claims = [_claim(name, broker.capabilities, [fact for fact in shown if fact.claim == name]) for name in names]
    return Report(broker.name, broker.title, place, claims)


def _claim(name: str, can: Capabilities, facts: list[FactResult]) -> ClaimResult:
    if name in EVERY_ADAPTER:
        return ClaimResult(name, "of every adapter", facts)
    return ClaimResult(name, _claimed(getattr(can, name)), facts)


def _claimed(value: Any) -> str | None:
    if value is True:
        return "yes"
    if not value or str(value) == "none":
        return None
    if isinstance(value, Mapping):
        return "; ".join(f"{kind} ({', '.join(times)})" for kind, times in value.items())
    if type(value) is tuple:
        return ", ".join(value)
    return str(getattr(value, "pattern", value))


def as_json(report: Report) -> str:
    body = {
        "broker": report.broker,
        "place": report.place,
        "all_kept": not report.not_kept,
        "not_kept": report.not_kept,
        "claims": [_claim_body(claim) for claim in report.claims],
    }
    return json.dumps(body, indent=2)


def _claim_body(claim: ClaimResult) -> dict[str, Any]:
    facts = [{"fact": fact.fact, "result": fact.result, "detail": fact.detail or None} for fact in claim.facts]
    return {"claim": claim.claim, "claimed": claim.claimed, "result": claim.result, "facts": facts}


def as_text(report: Report) -> str:
    lines = [f"{report.title} ({report.broker}), at its {report.place}"]
    for claim in report.claims:
        lines += ["", f"{claim.result.upper() if claim.result == NOT_KEPT else claim.result}: {_named(claim)}"]
        lines += [f"  {line}" for line in _facts(claim)]
    return "\n".join([*lines, "", _summary(report)])


def _named(claim: ClaimResult) -> str:
    return claim.claim if claim.claimed is None else f"{claim.claim} ({claim.claimed})"


def _facts(claim: ClaimResult) -> Iterator[str]:
    """Of what is not claimed every fact is skipped for that reason: it is said once."""
    if claim.result == NOT_CLAIMED:
        return
    if not claim.facts:
        yield "no fact is about it"
    for fact in claim.facts:
        yield f"{_MARKS[fact.result]}  {fact.fact}" + (f": {fact.detail}" if fact.detail else "")


def _summary(report: Report) -> str:
    counted = {result: sum(fact.result == result for fact in report.facts) for result in _MARKS}
    facts = f"{counted[PASSED]} facts passed, {counted[FAILED]} failed, {counted[SKIPPED]} were skipped"
    return f"{facts}. Claimed and not kept: {', '.join(report.not_kept) or 'nothing'}."
