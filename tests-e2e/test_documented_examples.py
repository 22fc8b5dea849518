"""Every example request of the API document, sent to a whole platform: it gets an answer that is documented."""

import os
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import pytest
import requests
from attack_callers import Caller
from attack_cells import Cell
from attack_fresh import Fresh
from attack_platform import running_platform
from attack_rules import RULES, Rule
from attack_targets import Scenery, targets
from attack_tenants import Builder, Tenant, bearer, keyed

PATIENCE_S = 60
BY_A_PERSON = {"login_decide": 403}
"""What needs a person in a browser: the form must come from our own page."""
_numbers = count(1)


@dataclass(frozen=True)
class Desk:
    """A tenant with everything that an example may name, and who may send it."""

    builder: Builder
    tenant: Tenant
    scenery: Scenery
    base_url: str

    def send(self, method: str, path: str, operation: Any) -> requests.Response:
        rule = next(rule for rule in RULES if (rule.method, rule.path, rule.listener) == (method, path, "web"))
        caller = self._caller(rule)
        target = next(iter(targets(rule, caller, self.scenery)))
        cell = Cell(replace(rule, headers=(), body=None, objects="none"), caller, target, self.tenant, rule.ok)
        made = Fresh(self.builder, self.scenery).prepared(cell)
        body, headers = self._body(operation), dict(made.headers)
        if operation["operationId"] == "invitations_accept_invitation":
            body, headers = self._invited()
        query = {item["name"]: item["example"] for item in operation["parameters"] if wants(item)}
        is_form = "application/x-www-form-urlencoded" in operation.get("requestBody", {}).get("content", {})
        sent: dict[str, Any] = {"data": body} if is_form else {"json": body}
        return requests.request(
            method, self.base_url + made.path, headers=headers, params=query, timeout=60, stream=True, **sent
        )

    def _caller(self, rule: Rule) -> Caller:
        if rule.public:
            return Caller("nobody", (), "none")
        if rule.users and "admin" in rule.users:
            return Caller("admin", bearer(self.tenant.tokens["admin"]), "user", self.tenant, "admin")
        if rule.key:
            return Caller("key", keyed(self.tenant.api_keys["paper"]), "key", self.tenant, environment="paper")
        organization = None if rule.operators else self.tenant.id
        return Caller("operator", bearer(self.builder.operator.token, organization), "service", self.tenant)

    def _body(self, operation: Any) -> Any:
        for content in operation.get("requestBody", {}).get("content", {}).values():
            return self._real(content["example"])
        return None

    def _real(self, example: dict[str, Any]) -> dict[str, Any]:
        """Placeholders of credentials stand for those of this platform."""
        service = self.builder.operator
        real = {"api_key": self.tenant.api_keys["paper"], "client_secret": service.client_secret, "token": "unknown"}
        real |= {"client_id": service.client_id} if "client_secret" in example else {}
        return {name: real.get(name, value) for name, value in example.items()}

    def _invited(self) -> tuple[dict[str, str], dict[str, str]]:
        subject = f"{self.tenant.canary}-invited-{next(_numbers)}"
        path, guest = f"/v1/organizations/{self.tenant.id}/invitations", {"subject": subject, "role": "member"}
        made = self.builder.call("POST", path, bearer(self.tenant.tokens["admin"]), guest)
        token = self.builder.identity.user_token(subject, self.tenant.external_id, None)
        return {"code": made["code"]}, dict(bearer(token))


def wants(parameter: Any) -> bool:
    return parameter["in"] == "query" and parameter.get("required", False)


@pytest.fixture(scope="module")
def desk(stack: Any) -> Iterator[Desk]:
    settings = dict(word.split("=", 1) for word in stack.operator[1:])
    with closing(Builder(running_platform({**os.environ, **settings}))) as builder:
        tenant, scratch = builder.tenant("examples"), builder.tenant("scratch", trades=False)
        scenery = Scenery(tenant, tenant, scratch, builder.operator.client_id)
        yield Desk(builder, tenant, scenery, stack.local["base_url"])


def documented(desk: Desk) -> list[tuple[str, str, Any]]:
    """Every operation; what ends something comes last, and what is inside of it before it."""
    paths = requests.get(f"{desk.base_url}/openapi.json", timeout=60).json()["paths"]
    found = [
        (method.upper(), path, operation) for path, all_of in paths.items() for method, operation in all_of.items()
    ]
    return sorted(found, key=lambda item: (item[0] == "DELETE", -len(item[1])))


def sent(desk: Desk, method: str, path: str, operation: Any) -> requests.Response:
    """The answer, where the platform is busy, or a statement has no signature yet, after a while."""
    deadline = time.monotonic() + PATIENCE_S
    while comes_later(answer := desk.send(method, path, operation), path):
        assert time.monotonic() < deadline, answer.text
        time.sleep(1)
    return answer


def comes_later(answer: requests.Response, path: str) -> bool:
    return answer.status_code == 503 or (answer.status_code == 409 and path.endswith("/statement"))


def test_every_example_request_gets_an_answer_that_succeeds_as_documented(desk: Desk) -> None:
    wrong = {}
    for method, path, operation in documented(desk):
        with sent(desk, method, path, operation) as answer:
            status, expected = answer.status_code, BY_A_PERSON.get(operation["operationId"])
            if str(status) not in operation["responses"] or (status != expected if expected else status >= 400):
                wrong[f"{method} {path}"] = (status, answer.text)

    assert wrong == {}
