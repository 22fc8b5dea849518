"""The matrix of callers and endpoints, and raw requests: what was not played is a finding itself."""

import asyncio
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attack_callers import Caller
from attack_cells import Cell, Prepared
from attack_endpoints import _registered, agree
from attack_findings import Findings
from attack_http import Answer
from attack_matrix import FEWEST, Matrix
from attack_options import SIZES
from attack_rules import PAGES, RULES
from attack_sockets import _Listener, play_all
from attack_targets import Target
from attack_tenants import Tenant

OWN = Tenant("own", "own-id", "own", "canary-own", "OWN", frozenset(), {}, {"paper": "key"}, {"paper": "account"})


def cell(listener: str = "web") -> Cell:
    rule = next(rule for rule in RULES if rule.listener == listener and rule not in PAGES)
    return Cell(rule, Caller("nobody", (), "none"), Target("own"), OWN, frozenset({401, 404}))


class Broken:
    def send(self, _request: Prepared) -> Answer:
        raise ValueError("not a length")

    def reconnect(self) -> None:
        pass


def matrix(findings: Findings) -> Matrix:
    scenery: Any = SimpleNamespace(victim=SimpleNamespace(marks=()))
    none: Any = None
    return Matrix(none, none, scenery, [], findings, total=2)


def test_a_cell_that_breaks_is_a_finding_and_the_next_is_played():
    findings = Findings()
    fresh: Any = SimpleNamespace(prepared=lambda _: Prepared("web", "GET", "/", ()))
    broken: Any = Broken()

    matrix(findings)._group([cell(), cell()], broken, fresh)

    assert findings.rules() == ["a cell could not be played"] * 2


def test_cells_that_were_not_played_are_a_finding():
    findings = Findings()
    findings.count("cells", 1)

    matrix(findings).conclude(SIZES["full"])

    assert findings.rules() == ["cells were not played", "the matrix is too small"]
    assert FEWEST == 7_000


def test_a_404_that_discloses_what_exists_is_a_finding_over_grpc_too():
    findings, unknown = Findings(), dict[tuple[str, str, bool], str]()
    for body in (b"No such account.", b"Not yours."):
        matrix(findings)._compare_with_unknown(cell("grpc"), Answer(404, (), body), unknown)

    assert findings.rules() == ["a 404 discloses what exists"]


def test_a_raw_request_that_breaks_is_a_finding():
    findings = Findings()

    def broken() -> None:
        raise OSError("no more sockets")

    play_all([("web 65537", broken), ("web pipelined", lambda: None)], findings)

    assert [(finding.rule, finding.case) for finding in findings.found] == [
        ("a raw request could not be played", "web 65537")
    ]


def test_every_raw_request_has_a_name_to_repeat_it_by():
    names = [name for name, _ in _Listener("web", ("", 1), OWN, Findings()).jobs((), 0.0)]

    assert {"web 65537", "web pipelined", "web half-closed", "web TE and CL"} <= set(names)
    assert len(names) == len(set(names))


ENVIRONMENT = {"DATABASE_URL": "postgresql://a:b@127.0.0.1/a", "REDIS_URL": "redis://127.0.0.1", "CURSOR_KEY": "k" * 32}


@pytest.mark.parametrize(("more", "unruled"), [((), 0), (("trading.TradingService/New",), 1)])
def test_a_grpc_method_that_is_served_and_has_no_rule_is_a_finding(more: tuple[str, ...], unruled: int):
    platform: Any = SimpleNamespace(environment_of=lambda _: ENVIRONMENT)
    served = {("grpc", "gRPC", method) for method in (*asyncio.run(_registered(platform)), *more)}
    others = {(rule.listener, rule.method, rule.path) for rule in RULES if rule.listener != "grpc"}
    documented = {(rule.listener, rule.method, rule.path) for rule in RULES if rule not in PAGES}
    findings = Findings()

    agree(served | others, documented, findings)

    assert findings.rules().count("an endpoint has no rule in attack_rules") == unruled
    assert findings.rules().count("a rule is about an endpoint that is not served") == 0
