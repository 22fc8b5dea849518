"""The attack's own judges: what they must notice."""

import base64
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

sys.path.insert(0, str(Path(__file__).parent))
from attack_callers import Caller
from attack_endpoints import agree
from attack_findings import Findings
from attack_fuzz import request
from attack_fuzz_targets import LEFT_OUT, FuzzTargets, operations
from attack_http import Answer
from attack_judge import wrong
from attack_mischief import MISCHIEF
from attack_rules import PAGES, RULES, Rule
from attack_secrets import _forms
from attack_targets import Scenery, Target, expected, targets
from attack_tenants import Tenant

PROBLEM = {"type": "urn:tip:problem:not_found", "title": "Not Found", "status": 404, "detail": "", "instance": "/",
           "code": "not_found", "request_id": "1"}  # fmt: skip
ENTITLED = frozenset({"controls_premium", "trading_live"})


def refusal(status: int, body: dict[str, Any] | str, kind: str = "application/problem+json") -> Answer:
    text = body if isinstance(body, str) else json.dumps(body)
    return Answer(status, (("content-type", kind),), text.encode())


def tenant(name: str, entitlements: frozenset[str] = ENTITLED) -> Tenant:
    made = Tenant(name, f"{name}-id", name, f"canary-{name}", name.upper(), entitlements, {}, {})
    for place in ("paper", "live", "spare_paper", "spare_live"):
        made.accounts[place], made.credentials[place] = f"{name}-{place}", f"{name}-{place}-credential"
        made.intents[place] = f"{name}-{place}-intent"
        made.bulk_operations[place] = f"{name}-{place}-bulk-operation"
    return made


def rule(name: str) -> Rule:
    return next(rule for rule in RULES if rule.name == name)


def test_a_defect_is_never_an_answer():
    assert wrong("GET", "/v1/accounts", 100, refusal(500, PROBLEM)) == "answered 500"


def test_a_healthy_platform_never_answers_503():
    assert wrong("GET", "/v1/accounts", 100, refusal(503, {**PROBLEM, "status": 503})) == "answered 503"


def test_a_refusal_has_one_form():
    assert wrong("GET", "/", 100, refusal(404, PROBLEM)) is None
    assert "not problem+json" in (wrong("GET", "/", 100, refusal(400, "no", "text/html")) or "")
    without_code = {name: value for name, value in PROBLEM.items() if name != "code"}
    assert "lacks code" in (wrong("GET", "/", 100, refusal(404, without_code)) or "")
    assert "another status" in (wrong("GET", "/", 100, refusal(400, PROBLEM)) or "")


def test_a_refusal_is_not_much_longer_than_its_request():
    long = {**PROBLEM, "detail": "a" * 1_500}

    assert wrong("GET", "/", 100, refusal(404, long)) == "a refusal is much longer than its request"
    assert wrong("GET", "/", 1_500, refusal(404, long)) is None


def test_only_the_two_endpoints_of_the_specification_refuse_in_plain_text():
    text = refusal(401, "unauthorized", "text/plain; charset=utf-8")

    assert wrong("DELETE", "/v1/users/me", 100, text) is None
    assert wrong("GET", "/v1/accounts", 100, text) is not None


OWN = tenant("own")
ADMIN = Caller("admin", (), "user", OWN, "admin")
LIVE = Caller("key", (), "key", OWN, None, "live", frozenset({"control:edit"}))
ANOTHERS = Target("victim's", account=False)
ORDER = {
    "nobody": (Caller("nobody", (), "none", refused=401), Target("own"), 401),
    "role": (Caller("member", (), "user", OWN, "member"), Target("own"), 403),
    "organization": (Caller("no organization", (), "user"), Target("own"), 403),
    "header": (Caller("service", (), "service", None, grants=frozenset({"control:write"})), Target("own"), 403),
    "malformed": (ADMIN, Target("malformed", malformed=True), 400),
    "another's": (ADMIN, ANOTHERS, 404),
    "another's before environment": (LIVE, ANOTHERS, 404),
    "environment": (LIVE, Target("own", environment="paper"), 403),
    "allowed": (ADMIN, Target("own"), 200),
}


@pytest.mark.parametrize(("caller", "target", "status"), ORDER.values(), ids=ORDER)
def test_the_first_check_that_fails_decides(caller: Caller, target: Target, status: int):
    control = rule("PUT /v1/controls/accounts/{account_id}")

    assert status in expected(control, caller, target, ENTITLED)


def test_without_its_entitlement_a_control_is_refused_and_a_paper_account_still_trades():
    admin = Caller("admin", (), "user", tenant("own"), "admin")
    key = Caller("key", (), "key", tenant("own"), None, "paper", frozenset({"intent:edit"}))
    paper = Target("own", environment="paper")

    assert expected(rule("PUT /v1/controls/accounts/{account_id}"), admin, paper, frozenset()) == {403}
    assert expected(rule("DELETE /v1/controls/accounts/{account_id}"), admin, paper, frozenset()) == {404}
    assert expected(rule("POST /v1/accounts/{account_id}/intents"), key, paper, frozenset()) == {201}


def test_a_key_reads_the_intents_of_both_environments_and_writes_in_its_own():
    key = Caller("key", (), "key", OWN, None, "paper", frozenset({"intent:edit", "intent:read"}))
    live = Target("own", environment="live")

    assert expected(rule("GET /v1/accounts/{account_id}/intents"), key, live, ENTITLED) == {200}
    assert expected(rule("POST /v1/accounts/{account_id}/intents"), key, live, ENTITLED) == {403}


def test_only_the_health_report_tells_another_organization_from_none():
    none, another = Caller("none", (), "user"), Caller("another", (), "user", names_organization=True)

    def status(name: str, caller: Caller) -> frozenset[int]:
        return expected(rule(name), caller, Target("-"), ENTITLED)

    assert [status("GET /v1/accounts/outbox/health", caller) for caller in (none, another)] == [{401}, {403}]
    assert [status("DELETE /v1/users/me", caller) for caller in (none, another)] == [{401}, {401}]


def test_an_operator_never_writes_to_the_victim():
    own, victim = tenant("own"), tenant("victim")
    operator = Caller("operator", (), "service", own, grants=frozenset({"organization:write"}))
    named = targets(rule("PATCH /v1/organizations/{organization_id}"), operator, Scenery(own, victim, own, "client"))

    assert not any(target.foreign for target in named)


def test_an_endpoint_that_is_undocumented_unserved_or_without_a_rule_is_a_finding():
    everything = {(rule.listener, rule.method, rule.path) for rule in RULES}
    pages = {(page.listener, page.method, page.path) for page in PAGES}
    documented = everything - pages
    new = ("web", "GET", "/v1/new")

    def found(served: set[Any], described: set[Any]) -> set[str]:
        findings = Findings()
        agree(served, described, findings)
        return {finding.rule for finding in findings.found}

    assert found(everything, documented) == set()
    assert found(everything | {new}, documented | {new}) == {"an endpoint has no rule in attack_rules"}
    assert "an endpoint is served and not documented" in found(everything | {new}, documented)
    assert "an endpoint is documented and not served" in found(everything, documented | {new})


def test_every_endpoint_has_one_rule():
    names = [(rule.listener, rule.name) for rule in RULES]

    assert len(names) == len(set(names))


def test_the_same_seed_and_number_make_the_same_request():
    found = {"paths": {"/v1/things/{id}": {"post": {"parameters": [{"name": "id", "in": "path"}], "requestBody": {
        "content": {"application/json": {"schema": {"type": "object", "required": ["a"],
                                                    "properties": {"a": {"type": "string"}}}}}}}}}}  # fmt: skip
    targets_of_fuzz = FuzzTargets(("127.0.0.1", 1), list(operations(found)), {}, {}, {"id": ["1"]}, 7)
    made = [request(targets_of_fuzz, number) for number in range(200)]

    assert made == [request(targets_of_fuzz, number) for number in range(200)]
    assert len(set(made)) > 100


DELETABLE = {
    "paths": {
        "/v1/users/me": {"get": {}, "delete": {}},
        "/v1/accounts/{account_id}": {
            "get": {"parameters": [{"name": "account_id", "in": "path"}]},
            "delete": {"parameters": [{"name": "account_id", "in": "path"}]},
        },
    }
}


def test_fuzzed_requests_delete_neither_their_callers_nor_their_accounts():
    fuzzed = FuzzTargets(("127.0.0.1", 1), list(operations(DELETABLE)), {}, {}, {"account_id": ["1"]}, 7)
    made = (request(fuzzed, number)[:2] for number in range(20_000))
    sent = {(method.lower(), target.partition("?")[0].replace("/accounts/1", "/accounts/{account_id}"))
            for method, target in made}  # fmt: skip

    assert ("options", "/v1/users/me") in sent and not sent & LEFT_OUT


def test_a_secret_is_searched_as_it_is_in_hexadecimal_quoted_and_in_base64_at_any_place():
    forms = [form for _, form in _forms("a+b/c secret")]
    for before in ("", "x", "xy"):
        assert any(form in base64.b64encode(f"{before}a+b/c secret".encode()) for form in forms)
    assert b"a+b/c secret" in forms and b"a%2Bb%2Fc%20secret" in forms and b"a+b/c secret".hex().encode() in forms


def coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.fixture(scope="module")
def public_jwk() -> dict[str, str]:
    numbers = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key().public_numbers()
    return {"kty": "RSA", "e": "AQAB", "n": coded(numbers.n.to_bytes(256, "big"))}


@pytest.mark.parametrize("name", sorted(MISCHIEF))
def test_mischief_never_leaves_a_token_as_it_was(name: str, public_jwk: dict[str, str]):
    head, claims = json.dumps({"alg": "RS256", "kid": "k"}), json.dumps({"sub": "a", "exp": 1})
    token = f"{coded(head.encode())}.{coded(claims.encode())}.{'A' * 342}"

    made = {MISCHIEF[name](random.Random(number), token, public_jwk) for number in range(20)}

    assert token not in made and len(made) > 5
