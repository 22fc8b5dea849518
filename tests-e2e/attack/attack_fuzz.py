"""Requests by chance against every documented operation: our own grammar at speed, and schemathesis."""

import multiprocessing
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import attack_schemathesis
from attack_endpoints import document
from attack_findings import Findings
from attack_grammar import Grammar
from attack_http import Answer, HttpConnection, NoAnswer, written
from attack_judge import wrong
from attack_options import Size
from attack_platform import Platform
from attack_tenants import Builder, Headers, Tenant, bearer, keyed

PART = "fuzz"
SHOWN_PER_PROCESS = 20
"""Findings of one rule that are told one by one; all are counted."""
SUITABLE = 0.8


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    parameters: list[dict[str, Any]]
    body: dict[str, Any] | None
    media_type: str
    schemes: tuple[str, ...]
    """Of the credentials that the document says it takes."""


@dataclass(frozen=True)
class FuzzTargets:
    """All that a process of requests needs to know."""

    web: tuple[str, int]
    operations: list[Operation]
    schemas: dict[str, Any]
    credentials: dict[str, list[Headers]]
    """By the document's name of the scheme."""
    ids: dict[str, list[str]]
    """By name of a path parameter: what may stand there and is known."""
    seed: int


@dataclass
class Outcome:
    statuses: Counter[str]
    wrong: list[tuple[str, str, str]]
    """Rule, case, detail."""
    rules: Counter[str] = field(default_factory=Counter)


def run(platform: Platform, builder: Builder, size: Size, seed: int, case: str | None, findings: Findings) -> None:
    targets = prepared(platform, builder, seed)
    if case is None or case.isdigit():
        by_grammar(targets, size, case, findings)
    if case is None or not case.isdigit():
        credentials = [each for group in targets.credentials.values() for each in group]
        attack_schemathesis.run(platform, credentials, targets.ids, size, seed, case, findings)


def by_grammar(targets: FuzzTargets, size: Size, case: str | None, findings: Findings) -> None:
    numbers = [range(int(case), int(case) + 1)] if case else shares(size.requests, size.processes)
    total, broken = Counter[str](), Counter[str]()
    for outcome in in_processes(requests, [(targets, share) for share in numbers]):
        total += outcome.statuses
        broken += outcome.rules
        for rule, name, detail in outcome.wrong:
            findings.add(PART, rule, name, detail)
    findings.note("fuzzed requests", sum(total.values()))
    findings.note("their answers", dict(sorted(total.items())))
    if broken:
        findings.note("fuzzed requests answered wrongly", dict(broken))
    if case is None and not total.keys() & {"200", "201", "204"}:
        findings.add(PART, "nothing was ever accepted, so nothing was tested", "0", str(total))


def in_processes(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """One process for each; a single one is not worth starting a process for."""
    if len(arguments) == 1:
        return [function(*arguments[0])]
    with multiprocessing.get_context("spawn").Pool(len(arguments)) as pool:
        return pool.starmap(function, arguments)


def shares(count: int, processes: int) -> list[range]:
    return [range(start, count, processes) for start in range(processes)]


def requests(targets: FuzzTargets, numbers: range) -> Outcome:
    outcome = Outcome(Counter(), [])
    with HttpConnection(targets.web) as http:
        for number in numbers:
            method, target, sent = request(targets, number)
            try:
                answer = http.exchange(sent)
            except NoAnswer as problem:
                outcome.statuses["none"] += 1
                outcome.wrong.append(("no answer", str(number), f"{method} {target[:80]}: {problem}"))
                continue
            outcome.statuses[str(answer.status)] += 1
            _note(outcome, number, method, target, len(sent), answer)
    return outcome


def _note(outcome: Outcome, number: int, method: str, target: str, length: int, answer: Answer) -> None:
    problem = wrong(method, target.partition("?")[0], length, answer)
    if problem is None:
        return
    outcome.rules[problem] += 1
    if outcome.rules[problem] <= SHOWN_PER_PROCESS:
        outcome.wrong.append((problem, str(number), f"{method} {target[:80]}: {answer.status} {answer.text[:150]}"))


def request(targets: FuzzTargets, number: int) -> tuple[str, str, bytes]:
    """The same for the same seed and number, whatever was sent before."""
    grammar = Grammar(random.Random(f"{targets.seed}:{number}"), targets.schemas)
    dice = grammar.dice
    operation = dice.choice(targets.operations)
    path = operation.path
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            known = targets.ids.get(parameter["name"], ["word"])
            turn = dice.random()
            value = dice.choice(known) if turn < 0.8 else grammar.segment()
            path = path.replace(f"{{{parameter['name']}}}", value)
    method = operation.method if dice.random() < 0.97 else dice.choice(("HEAD", "OPTIONS", "PUT", "DELETE", "FROB"))
    headers = [*_credential(targets, operation, dice), *grammar.headers()]
    body = None
    if operation.body is not None or dice.random() < 0.05:
        body = grammar.body(operation.body or {})
        headers.append(("Content-Type", grammar.content_type() if operation.media_type != FORM else FORM))
    target = path + grammar.query(operation.parameters)
    return method, target, written(method, target, headers, body)


def _credential(targets: FuzzTargets, operation: Operation, dice: random.Random) -> Headers:
    """Mostly one that is suitable: a refused caller is refused before anything is read."""
    suitable = [scheme for scheme in operation.schemes if scheme in targets.credentials]
    if suitable and dice.random() < SUITABLE:
        return dice.choice(targets.credentials[dice.choice(suitable)])
    return dice.choice(((), *(each for group in targets.credentials.values() for each in group)))


FORM = "application/x-www-form-urlencoded"


def prepared(platform: Platform, builder: Builder, seed: int) -> FuzzTargets:
    """Callers of every kind on objects that may be lost, beside others that are only read."""
    tenant = builder.tenant("fuzzed")
    found = document(platform.web)
    scopes = ("account:read", "account:write", "credential:read", "credential:write", "intent:read", "control:read",
              "control:write", "organization:read", "api-key:write")  # fmt: skip
    service = builder.world.service_account(scopes)
    credentials = {
        "apiKey": [keyed(tenant.api_keys["paper"]), keyed(tenant.api_keys["live"])],
        "bearer": [bearer(tenant.tokens["admin"]), bearer(tenant.tokens["admin"]), bearer(tenant.tokens["member"])],
        "clientCredentials": [bearer(builder.operator.token, tenant.id), bearer(service.token, tenant.id)],
    }
    return FuzzTargets(platform.web, list(operations(found)), found["components"]["schemas"], credentials,
                 ids(builder, tenant), seed)  # fmt: skip


def ids(builder: Builder, tenant: Tenant) -> dict[str, list[str]]:
    scratch = builder.world.organization(f"{tenant.canary}-scratch")
    return {
        "account_id": [*tenant.accounts.values()],
        "credential_id": [*tenant.credentials.values()],
        "intent_id": [*tenant.intents.values()],
        "symbol": ["AAPL", "SIM.OPEN", "aapl", tenant.symbol, "BTC%2FUSD"],
        "organization_id": [str(scratch.id)],
        "subject": [f"{tenant.canary}-somebody", "a%2Fb"],
        "key_id": [tenant.key_id],
        "client_id": [builder.world.service_account(("account:read",)).client_id],
        "name": ["controls_premium", "trading_live"],
        "provider": ["local"],
        "provider_id": [tenant.external_id],
    }


def operations(found: dict[str, Any]) -> Iterator[Operation]:
    """All that the web port serves, but for the one that would end its own caller."""
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if (method, path) in LEFT_OUT or operation.get("servers"):
                continue
            content = operation.get("requestBody", {}).get("content", {})
            media_type = next(iter(content), "")
            body = content[media_type]["schema"] if content else None
            schemes = tuple(name for each in operation.get("security", []) for name in each)
            yield Operation(method.upper(), path, operation.get("parameters", []), body, media_type, schemes)


# The first would delete the callers themselves, the second every account.
LEFT_OUT = {("delete", "/v1/users/me"), ("delete", "/v1/accounts/{account_id}")}
