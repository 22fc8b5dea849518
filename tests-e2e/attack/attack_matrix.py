"""The isolation matrix: every endpoint, every kind of caller, every kind of object, and the one answer allowed."""

import json
import random
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

import attack_endpoints
import attack_special
from attack_callers import Caller, callers
from attack_cells import Cell, Sender
from attack_evidence import changes, settled
from attack_findings import Findings
from attack_fresh import Fresh
from attack_http import Answer, NoAnswer
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_rules import RULES
from attack_targets import Scenery, expected, targets
from attack_tenants import Builder, Tenant

PART = "matrix"
THREADS = 4
FEWEST = 7_000
"""Cells of the whole matrix."""
_ORDER = ("GET", "gRPC", "POST", "PUT", "PATCH", "DELETE")
_OF_ONE_REQUEST = ("instance", "request_id")


@dataclass
class Matrix:
    platform: Platform
    builder: Builder
    scenery: Scenery
    everybody: list[Caller]
    findings: Findings
    progress: Progress = field(default_factory=Progress)
    total: int = 0
    """Cells of this run."""

    def cells(self) -> list[Cell]:
        made = []
        for rule in RULES:
            for caller in self.everybody:
                tenant = caller.tenant or self.scenery.own
                for target in targets(rule, caller, self.scenery):
                    allowed = expected(rule, caller, target, tenant.entitlements)
                    made.append(Cell(rule, caller, target, tenant, allowed))
        return made

    def run(self, cells: Iterable[Cell]) -> None:
        """Cells of one path keep their order, and reads come before what ends something."""
        groups: dict[str, list[Cell]] = defaultdict(list)
        for cell in cells:
            groups[cell.rule.path].append(cell)
        waiting: SimpleQueue[list[Cell]] = SimpleQueue()
        for group in groups.values():
            waiting.put(sorted(group, key=lambda cell: _ORDER.index(cell.rule.method)))
        threads = [threading.Thread(target=self._work, args=(waiting,)) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def conclude(self, size: Size) -> None:
        """Whether all of them were played, and whether they are as many as they have to be."""
        played = self.findings.counts.get("cells", 0)
        if played < self.total:
            self.findings.add(PART, "cells were not played", None, f"{self.total - played} of {self.total}")
        if self.findings.only is None and size.cells is None and played < FEWEST:
            self.findings.add(PART, "the matrix is too small", None, f"{played} cells and not {FEWEST}")

    def _work(self, waiting: "SimpleQueue[list[Cell]]") -> None:
        with Sender(self.platform) as sender:
            fresh = Fresh(self.builder, self.scenery)
            while True:
                try:
                    group = waiting.get_nowait()
                except Empty:
                    return
                self._group(group, sender, fresh)

    def _group(self, group: list[Cell], sender: Sender, fresh: Fresh) -> None:
        unknown: dict[tuple[str, str, bool], str] = {}
        for cell in group:
            try:
                prepared = fresh.prepared(cell)
                answer = sender.send(prepared)
                self._judge(cell, prepared.known_already, answer)
                self._compare_with_unknown(cell, answer, unknown)
            except NoAnswer as problem:
                self.findings.add(PART, "no answer", cell.name, str(problem))
            except Exception as problem:  # noqa: BLE001 - a cell that cannot be played has not passed, and others still are
                self.findings.add(PART, "a cell could not be played", cell.name, repr(problem))
                sender.reconnect()
            else:
                self.findings.count("cells")
                self.progress.at(self.findings.counts["cells"], self.total)

    def _judge(self, cell: Cell, known_already: str, answer: Answer) -> None:
        if answer.status not in cell.allowed:
            rule = "an answer is none of those allowed"
            if answer.status < 400:
                rule = "a caller got what it may not have"
            elif min(cell.allowed) < 400:
                rule = "a caller was refused what it may have"
            wanted = "/".join(map(str, sorted(cell.allowed)))
            self.findings.add(PART, rule, cell.name, f"{answer.status} and not {wanted}: {answer.text[:200]}")
        self._find_marks(cell, known_already, answer)

    def _find_marks(self, cell: Cell, known_already: str, answer: Answer) -> None:
        if cell.caller.kind == "service" and cell.rule.operators:
            return  # operators see all organizations
        seen = answer.text + str(answer.headers)
        for mark in self.scenery.victim.marks:
            if mark in seen and mark not in known_already:
                self.findings.add(PART, "an answer holds something of another organization", cell.name, mark)

    def _compare_with_unknown(self, cell: Cell, answer: Answer, unknown: dict[tuple[str, str, bool], str]) -> None:
        """What is another's is answered like what does not exist, to the letter."""
        if answer.status != 404 or not (answer.body.startswith(b"{") or cell.rule.listener == "grpc"):
            return
        body = answer.text
        if cell.rule.listener != "grpc":
            members = {name: value for name, value in answer.json().items() if name not in _OF_ONE_REQUEST}
            body = json.dumps(members)
        first = unknown.setdefault((cell.rule.name, cell.caller.name, cell.target.account), body)
        if first != body:
            self.findings.add(PART, "a 404 discloses what exists", cell.name, f"{body} and {first}")


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    attack_endpoints.compare(platform, findings)
    own, bare, victim = builder.tenant("own"), builder.tenant("bare", ()), builder.tenant("victim")
    scratch = builder.tenant("scratch", trades=False)
    scenery = Scenery(own, victim, scratch, builder.identity.service_account(("organization:write",)).client_id)
    everybody = [caller for caller in callers(builder, own, bare, victim) if caller.usual or size.every_caller]
    matrix = Matrix(platform, builder, scenery, everybody, findings, progress)
    cells = chosen(matrix.cells(), size.cells, seed, findings)
    matrix.total = len(cells)
    progress.begin(PART)
    findings.note("kinds of caller", len(everybody))
    refused = [cell for cell in cells if min(cell.allowed) >= 400]
    _unchanged((own, bare, victim), refused, matrix, "a refused request changed something")
    _unchanged((victim,), [cell for cell in cells if min(cell.allowed) < 400], matrix,
               "a request changed something of another organization")  # fmt: skip
    matrix.conclude(size)
    attack_special.run(platform, builder, scenery, findings)


def chosen(cells: list[Cell], count: int | None, seed: int, findings: Findings) -> list[Cell]:
    """All of them, or as many by chance, the same number of every endpoint."""
    if findings.only is not None:
        return [cell for cell in cells if findings.chosen(cell.name)]
    if count is None:
        return cells
    by_rule: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_rule[f"{cell.rule.listener} {cell.rule.name}"].append(cell)
    each = max(1, count // len(by_rule))
    return [cell for name, group in by_rule.items() for cell in _some(group, each, random.Random(f"{seed} {name}"))]


def _some(group: list[Cell], count: int, dice: random.Random) -> list[Cell]:
    """Of what is allowed at least one: a platform that refuses everything must not pass."""
    allowed = [cell for cell in group if min(cell.allowed) < 400]
    first = dice.sample(allowed, min(len(allowed), max(1, count // 5)))
    rest = [cell for cell in group if min(cell.allowed) >= 400]
    return first + dice.sample(rest, min(len(rest), count - len(first)))


def _unchanged(tenants: tuple[Tenant, ...], cells: list[Cell], matrix: Matrix, rule: str) -> None:
    if not cells:
        return
    before = settled(matrix.platform.admin_url, tenants)
    matrix.run(cells)
    after = settled(matrix.platform.admin_url, tenants)
    for name in before:
        for change in changes(before[name], after[name]):
            matrix.findings.add(PART, rule, None, f"{name}: {change}")
