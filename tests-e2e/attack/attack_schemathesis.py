"""The served document against the served API, with schemathesis to think of requests."""

import random
import zlib
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import requests
import schemathesis
from attack_findings import Findings
from attack_http import Answer
from attack_judge import wrong
from attack_options import Size
from attack_platform import Platform
from attack_tenants import Headers
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument, Unsatisfiable
from schemathesis import GenerationMode

PART = "fuzz"
PHASES = (Phase.generate,)
TIMEOUT_S = 60


def run(
    platform: Platform, credentials: list[Headers], ids: dict[str, list[str]], size: Size, seed: int,
    case: str | None, findings: Findings,
) -> None:  # fmt: skip
    api = schemathesis.openapi.from_url(f"{platform.local['base_url']}/openapi.json", wait_for_schema=30)
    named = {f"{result.ok().method.upper()} {result.ok().path}": result.ok() for result in api.get_all_operations()}
    chosen = [name for name in named if not name.endswith("/events") and name != "DELETE /v1/users/me"]
    if case is not None:
        chosen = [case]
    elif size.operations is not None:
        chosen = random.Random(seed).sample(sorted(chosen), size.operations)
    for name in chosen:
        for mode in GenerationMode:
            operation = _Operation(named[name], name, mode, credentials, ids, platform.local["base_url"], findings)
            operation.play(size.examples, seed)


class _Operation:
    def __init__(
        self, operation: Any, name: str, mode: GenerationMode, credentials: list[Headers], ids: dict[str, list[str]],
        base_url: str, findings: Findings,
    ) -> None:  # fmt: skip
        self.operation, self.name, self.mode = operation, name, mode
        self.credentials, self.ids, self.base_url, self.findings = credentials, ids, base_url, findings

    def play(self, examples: int, seed: int) -> None:
        strategy = self.operation.as_strategy(generation_mode=self.mode)

        @seeded(zlib.crc32(f"{seed} {self.name} {self.mode}".encode()))
        @settings(max_examples=examples, deadline=None, database=None, phases=PHASES,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(strategy, st.sampled_from(self.credentials), st.booleans())
        def played(case: Any, credential: Headers, known: bool) -> None:
            if known:
                case.path_parameters = {
                    name: self.ids.get(name, [value])[0] for name, value in (case.path_parameters or {}).items()
                }
            self._send(case, credential)

        with suppress(
            Unsatisfiable, InvalidArgument, SkipTest
        ):  # nothing to be wrong with, in an operation without input
            played()

    def _send(self, case: Any, credential: Headers) -> None:
        self.findings.count("requests of schemathesis")
        try:
            response = case.call(base_url=self.base_url, headers=dict(credential), timeout=TIMEOUT_S)
        except (requests.ConnectionError, requests.Timeout) as problem:
            self.findings.add(PART, "no answer", self.name, repr(problem))
            return
        except (requests.RequestException, ValueError):
            return  # no HTTP library sends that; our own grammar does
        headers = tuple((name.lower(), values[0]) for name, values in response.headers.items())
        answer = Answer(response.status_code, headers, response.content or b"")
        sent = len(response.request.body or b"") + len(response.request.url or "")
        if problem := wrong(self.operation.method.upper(), self.operation.path, sent, answer):
            self.findings.add(PART, problem, self.name, f"{response.request.url} {answer.status} {answer.text[:150]}")
