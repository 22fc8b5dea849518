"""The served document against the served API, with schemathesis to think of requests."""

import random
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from unittest import SkipTest
from urllib.parse import unquote

import requests
import schemathesis
from attack_findings import Findings
from attack_fuzz_targets import LEFT_OUT, FuzzTargets
from attack_http import Answer
from attack_judge import wrong
from attack_options import Size
from attack_platform import Platform
from attack_progress import Progress
from attack_tenants import Headers
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument, Unsatisfiable
from schemathesis import GenerationMode

PART = "fuzz"
PHASES = (Phase.generate,)
TIMEOUT_S = 60


def run(platform: Platform, targets: FuzzTargets, size: Size, findings: Findings, progress: Progress) -> None:
    api = schemathesis.openapi.from_url(f"{platform.local['base_url']}/openapi.json", wait_for_schema=30)
    found = (result.ok() for result in api.get_all_operations())
    named = {f"{operation.method.upper()} {operation.path}": operation for operation in found}
    names = sorted(name for name in named if not name.endswith("/events") and not left_out(name))
    chosen = [name for name in names if findings.chosen(name)]
    if findings.only is None and size.operations is not None:
        chosen = random.Random(targets.seed).sample(names, size.operations)
    progress.begin(PART)
    for number, name in enumerate(chosen):
        progress.at(number, len(chosen))
        for mode in GenerationMode:
            _Operation(named[name], name, mode, targets, platform.local["base_url"], findings).play(size.examples)


def left_out(name: str) -> bool:
    method, _, path = name.partition(" ")
    return (method.lower(), path) in LEFT_OUT


class _Operation:
    def __init__(
        self, operation: Any, name: str, mode: GenerationMode, targets: FuzzTargets, base_url: str, findings: Findings
    ) -> None:
        self.operation, self.name, self.mode = operation, name, mode
        self.targets, self.base_url, self.findings = targets, base_url, findings
        self.of_ours = next(own for own in targets.operations if f"{own.method} {own.path}" == name)

    def play(self, examples: int) -> None:
        strategy = self.operation.as_strategy(generation_mode=self.mode)
        credentials = [credential for group in self.targets.credentials.values() for credential in group]

        @seeded(zlib.crc32(f"{self.targets.seed} {self.name} {self.mode}".encode()))
        @settings(max_examples=examples, deadline=None, database=None, phases=PHASES,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy, st.sampled_from(credentials), st.none() | st.integers(0, 1_000))
        def played(case: Any, credential: Headers, known: int | None) -> None:
            if known is not None:
                case.path_parameters = self._known(case.path_parameters or {}, known)
            self._send(case, credential)

        with suppress(
            Unsatisfiable, InvalidArgument, SkipTest
        ):  # nothing to be wrong with, in an operation without input
            played()

    def _known(self, given: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Instead of what was generated, what is there; not always the same, since deletions are played, too."""
        made: dict[str, Any] = {}
        for name in given:
            there = self.targets.known(self.of_ours, name, str(made.get("account_id", "")))
            made[name] = unquote(there[number % len(there)])
        return made

    def _send(self, case: Any, credential: Headers) -> None:
        self.findings.count("requests of schemathesis")
        try:
            response = case.call(base_url=self.base_url, headers=dict(credential), timeout=TIMEOUT_S)
        except ValueError:
            self.findings.count("of these not sendable by an HTTP library")
            return  # our own grammar sends such
        except requests.RequestException as problem:  # also an answer that broke off
            self.findings.add(PART, "no answer", self.name, repr(problem))
            return
        headers = tuple((name.lower(), values[0]) for name, values in response.headers.items())
        answer = Answer(response.status_code, headers, response.content or b"")
        sent = len(response.request.body or b"") + len(response.request.url or "")
        if problem := wrong(self.operation.method.upper(), self.operation.path, sent, answer):
            self.findings.add(PART, problem, self.name, f"{response.request.url} {answer.status} {answer.text[:150]}")
