"""Requests by chance against every documented operation: our own grammar at speed, and schemathesis."""

import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import attack_schemathesis
from attack_findings import Findings
from attack_fuzz_targets import LEFT_OUT, Arsenal, FuzzTargets, Operation
from attack_grammar import Grammar
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_judge import wrong
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_tenants import Builder, Headers
from attack_workers import in_processes, in_threads, slices

PART = "fuzz"
SHOWN_PER_SLICE = 20
"""Findings of one rule that are shown one by one; all are counted."""
SLICE = 8_000
"""Requests until the objects they are about are renewed."""
SUITABLE = 0.85
SPARED_DELETIONS = 0.75
OTHER_METHODS = ("HEAD", "OPTIONS", "PUT", "DELETE", "FROB")
NOT_REACHED = ("401", "404", "429")
"""Refused before the operation itself is reached."""
ENOUGH = 10_000
"""Requests from which on shares say something."""
TENTHS = 10
FORM = "application/x-www-form-urlencoded"


@dataclass
class Outcome:
    statuses: Counter[str] = field(default_factory=Counter)
    sent: Counter[int] = field(default_factory=Counter)
    """By tenth of the run."""
    accepted: Counter[int] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    """Rule, case, detail."""
    longest_refusal: int = 0
    """By how many bytes a refusal was longer than its request, at most."""

    def add(self, other: "Outcome") -> None:
        for name in ("statuses", "sent", "accepted", "rules"):
            getattr(self, name).update(getattr(other, name))
        self.longest_refusal = max(self.longest_refusal, other.longest_refusal)


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    arsenal = Arsenal(platform, builder, seed)
    if findings.only is None or findings.only.isdigit():
        by_grammar(arsenal, size, findings, progress)
    if findings.only is None or not findings.only.isdigit():
        attack_schemathesis.run(platform, arsenal.targets(), size, findings, progress)


def by_grammar(arsenal: Arsenal, size: Size, findings: Findings, progress: Progress) -> None:
    numbers = slices(size.requests, SLICE)
    if findings.only is not None:
        findings.chosen(findings.only)
        numbers = [range(int(findings.only), int(findings.only) + 1)]
    arguments = ((arsenal.targets(), part, size.requests, size.connections) for part in numbers)
    total = Outcome()
    for future in in_processes(requests, arguments, size.processes):
        _collect(future, total, findings)
        progress.at(total.statuses.total(), size.requests)
    if findings.only is None:
        judge_shares(total, findings)


def _collect(future: "Future[Outcome]", total: Outcome, findings: Findings) -> None:
    """Each slice as soon as it has ended, so that one that breaks takes nothing else with it."""
    try:
        outcome = future.result()
    except Exception as problem:  # noqa: BLE001 - a slice that broke has tested nothing
        findings.add(PART, "a slice of fuzzed requests broke", None, repr(problem))
        return
    total.add(outcome)
    for rule, case, detail in outcome.wrong:
        findings.add(PART, rule, case, detail)
    count = total.statuses.total()
    findings.note("fuzzed requests", count)
    findings.note("their answers", dict(sorted(total.statuses.items())))
    shares = {status: f"{100 * number / count:.1f}" for status, number in sorted(total.statuses.items())}
    findings.note("shares of their answers, %", shares)
    findings.note("bytes by which a refusal was longer than its request, at most", total.longest_refusal)
    if total.rules:
        findings.note("fuzzed requests answered wrongly", dict(total.rules))


def judge_shares(total: Outcome, findings: Findings) -> None:
    """Whether the requests reached what they were meant to test, to the end."""
    count = total.statuses.total()
    shares = {tenth: total.accepted[tenth] / total.sent[tenth] for tenth in (0, TENTHS - 1) if total.sent[tenth]}
    if not total.accepted:
        findings.add(PART, "nothing was ever accepted, so nothing was tested", None, str(total.statuses))
    if count < ENOUGH:
        return
    if shares.get(TENTHS - 1, 0.0) < shares.get(0, 0.0) / 2:
        findings.add(PART, "the requests wear out what they test", None, f"accepted by tenth: {shares}")
    if sum(total.statuses[status] for status in NOT_REACHED) > count / 2:
        findings.add(PART, "most requests do not reach the operation", None, str(total.statuses))


def requests(targets: FuzzTargets, numbers: range, total: int, connections: int) -> Outcome:
    outcomes: list[Outcome] = []

    def work(drawn: Iterator[int]) -> None:
        outcome = Outcome()
        outcomes.append(outcome)
        with HttpConnection(targets.web) as http:
            for number in drawn:
                _play(http, targets, number, number * TENTHS // max(total, number + 1), outcome)

    in_threads(work, numbers, min(connections, len(numbers)))
    sum_of_all = Outcome()
    for outcome in outcomes:
        sum_of_all.add(outcome)
        sum_of_all.wrong += outcome.wrong
    return sum_of_all


def _play(http: HttpConnection, targets: FuzzTargets, number: int, tenth: int, outcome: Outcome) -> None:
    method, target, sent = request(targets, number)
    outcome.sent[tenth] += 1
    try:
        answer = http.exchange(sent)
    except NoAnswer as problem:
        outcome.statuses["none"] += 1
        outcome.wrong.append(("no answer", str(number), f"{method} {target[:80]}: {problem}"))
        return
    outcome.statuses[str(answer.status)] += 1
    if answer.status < 300:
        outcome.accepted[tenth] += 1
    elif answer.status >= 400:
        outcome.longest_refusal = max(outcome.longest_refusal, len(answer.body) - len(sent))
    _note(outcome, number, method, target, len(sent), answer)


def _note(outcome: Outcome, number: int, method: str, target: str, length: int, answer: Answer) -> None:
    problem = wrong(method, target.partition("?")[0], length, answer)
    if problem is None:
        return
    outcome.rules[problem] += 1
    if outcome.rules[problem] <= SHOWN_PER_SLICE:
        outcome.wrong.append((problem, str(number), f"{method} {target[:80]}: {answer.status} {answer.text[:150]}"))


def request(targets: FuzzTargets, number: int) -> tuple[str, str, bytes]:
    """The same for the same seed and number, whatever was sent before."""
    grammar = Grammar(random.Random(f"{targets.seed}:{number}"), targets.schemas)
    dice = grammar.dice
    operation = dice.choice(targets.operations)
    if operation.method == "DELETE" and dice.random() < SPARED_DELETIONS:
        operation = dice.choice(targets.operations)  # else most of the others would find nothing any more
    path = _path(targets, operation, grammar)
    method = operation.method if dice.random() < 0.97 else _other_method(operation, dice)
    headers = [*_credential(targets, operation, dice), *grammar.headers()]
    body = None
    if operation.body is not None or dice.random() < 0.05:
        body = grammar.body(operation.body or {})
        headers.append(("Content-Type", grammar.content_type() if operation.media_type != FORM else FORM))
    target = path + grammar.query(operation.parameters)
    return method, target, written(method, target, headers, body)


def _path(targets: FuzzTargets, operation: Operation, grammar: Grammar) -> str:
    path, account_id = operation.path, ""
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            name = parameter["name"]
            good = grammar.dice.random() < 0.9
            value = grammar.dice.choice(targets.known(operation, name, account_id)) if good else grammar.segment()
            account_id = value if name == "account_id" else account_id
            path = path.replace(f"{{{name}}}", value)
    return path


def _other_method(operation: Operation, dice: random.Random) -> str:
    """Never one that is left out: its path may be that of an operation which is not."""
    return dice.choice([method for method in OTHER_METHODS if (method.lower(), operation.path) not in LEFT_OUT])


def _credential(targets: FuzzTargets, operation: Operation, dice: random.Random) -> Headers:
    """Mostly one that is suitable: a refused caller is refused before anything is read."""
    suitable = [scheme for scheme in operation.schemes if scheme in targets.credentials]
    if suitable and dice.random() < SUITABLE:
        return dice.choice(targets.credentials[dice.choice(suitable)])
    every: tuple[Any, ...] = ((), *(credential for group in targets.credentials.values() for credential in group))
    return dice.choice(every)
