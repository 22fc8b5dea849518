"""What a matrix of endpoints and callers cannot say: references in bodies, cursors, odd methods and spellings."""

import json
import secrets
import time
from typing import Any

from attack_findings import Findings
from attack_http import HttpConnection, written
from attack_platform import Platform
from attack_rules import PAGES, RULES, Rule
from attack_targets import Scenery
from attack_tenants import JSON, Builder, Tenant, bearer, create, keyed, unknown_id

PART = "matrix"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
LOG_S = 30.0
CONTROL = {chr(number) for number in (*range(32), *range(127, 160))}
STRICT = {
    "400 digits": b"9" * 400,
    "beyond a double": b"1e400",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "nesting over 32": b"[" * 40 + b"]" * 40,
    "duplicate keys": b'1, "price_collar_bps": 2',
    "trailing data": b"1} {",
    "NUL": b'"\\u0000"',
    "a lone surrogate": b'"\\ud800"',
    "not UTF-8": b'"\xff"',
}
REFUSED = frozenset({400, 401, 403, 404, 405, 415, 422})


def run(platform: Platform, builder: Builder, scenery: Scenery, findings: Findings) -> None:
    special = _Special(platform, builder, scenery, findings)
    special.references()
    special.cursors()
    special.idempotency_keys()
    special.mass_assignment()
    special.deleted_users_of_others()
    special.admins_by_one_scope()
    special.methods()
    special.spellings()
    special.unknown_parameters()
    special.strict_json()
    special.log_lines()
    special.simulator()
    special.pages()


class _Special:
    def __init__(self, platform: Platform, builder: Builder, scenery: Scenery, findings: Findings) -> None:
        self.platform, self.builder, self.findings = platform, builder, findings
        self.own, self.victim, self.scratch = scenery.own, scenery.victim, scenery.scratch
        self.client_id = scenery.client_id
        self.admin = bearer(self.own.tokens["admin"])
        self.key = keyed(self.own.api_keys["paper"])

    def _expect(self, rule: str, case: str, status: int, allowed: frozenset[int] | set[int], text: str) -> None:
        if not self.findings.chosen(case):
            return
        self.findings.count("special cells")
        if status not in allowed:
            wanted = "/".join(map(str, sorted(allowed)))
            self.findings.add(PART, rule, case, f"{status} and not {wanted}: {text[:200]}")

    def references(self) -> None:
        """A REPLACE or CANCEL of another's intent, of another account's, of none."""
        path = f"/v1/accounts/{self.own.accounts['paper']}/intents"
        named = {"victim's": self.victim.intents["paper"], "own live": self.own.intents["live"], "no": unknown_id()}
        texts = {}
        for word, intent in named.items():
            for kind, more in (("CANCEL", {}), ("REPLACE", {"spec": create()["command"]["payload"]["spec"]})):
                command = {"type": kind, "payload": {"ref_intent_id": intent, **more}}
                answer = self.builder.answer("POST", path, self.key, {"command": command})
                self._expect("a reference reaches another's intent", f"{kind} of {word} intent", answer.status, {404},
                             answer.text)  # fmt: skip
                texts.setdefault(kind, set()).add(answer.json().get("detail") if answer.status == 404 else answer.text)
                batch = self.builder.answer("POST", f"{path}/batch", self.key, {"commands": [command]})
                found = batch.json()["results"][0]["status"] if batch.status == 200 else batch.status
                self._expect("a reference reaches another's intent", f"batched {kind} of {word} intent", found, {404},
                             batch.text)  # fmt: skip
        for kind, bodies in texts.items():
            if self.findings.chosen(kind) and len(bodies) > 1:
                self.findings.add(PART, "a 404 discloses what exists", kind, str(bodies))

    def cursors(self) -> None:
        for path, cursor in self.victim.cursors.items():
            own = path.replace(self.victim.accounts["paper"], self.own.accounts["paper"])
            own = own.replace(self.victim.id, self.own.id)
            answer = self.builder.answer("GET", f"{own}?next_cursor={cursor}", self.admin)
            self._expect("another's cursor is taken", own, answer.status, {400}, answer.text)
            other = next(cursor for cursor in self.own.cursors.values() if cursor != self.own.cursors[own])
            answer = self.builder.answer("GET", f"{own}?next_cursor={other}", self.admin)
            self._expect("the cursor of another list is taken", own, answer.status, {400}, answer.text)

    def idempotency_keys(self) -> None:
        header = (("Idempotency-Key", secrets.token_hex(8)),)
        made = []
        for tenant in (self.victim, self.own):
            path = f"/v1/accounts/{tenant.accounts['paper']}/intents"
            made.append(self.builder.answer("POST", path, (*keyed(tenant.api_keys["paper"]), *header), create()))
        first, second = made
        self._expect("an idempotency key of another organization counts", "POST intents", second.status, {201}, "")
        if second.header("idempotent-replayed") or first.json()["intent_id"] == second.json().get("intent_id"):
            self.findings.add(PART, "an idempotency key of another organization counts", "POST intents", second.text)

    def mass_assignment(self) -> None:
        """Fields that are the platform's to fill in."""
        for rule in RULES:
            if rule.body is None or rule.public or not rule.users:
                continue
            path = self._path(rule, self.own)
            for name, value in (("organization_id", self.victim.id), ("id", unknown_id()), ("version", 9)):
                body = {**rule.body(self.own), name: value}
                answer = self.builder.answer(rule.method, path, (*self.admin, *rule.headers), body)
                self._expect("a body may say what is not the caller's to say", f"{rule.name} {name}", answer.status,
                             {422}, answer.text)  # fmt: skip

    def deleted_users_of_others(self) -> None:
        subject = f"{self.scratch.canary}-deleted"
        path = f"/v1/organizations/{self.scratch.id}/memberships/{subject}"
        self.builder.call("PUT", path, bearer(self.scratch.tokens["admin"]), {"role": "member"})
        token = self.builder.identity.user_token(subject, self.scratch.external_id, "member")
        self.builder.call("DELETE", "/v1/users/me", bearer(token))
        ours = f"/v1/organizations/{self.own.id}/memberships"
        gone = self.builder.answer("PUT", f"{ours}/{subject}", self.admin, {"role": "member"})
        never = self.builder.answer("PUT", f"{ours}/{subject}-never", self.admin, {"role": "member"})
        self._expect("an admin learns that another's user was deleted", "PUT membership", gone.status, {never.status},
                     gone.text)  # fmt: skip

    def admins_by_one_scope(self) -> None:
        service = self.builder.identity.service_account(("organization:write",))
        path = f"/v1/organizations/{self.scratch.id}/memberships/{self.scratch.canary}-promoted"
        answer = self.builder.answer("PUT", path, bearer(service.token), {"role": "admin"})
        self._expect("organization:write alone makes an admin of any organization", "PUT membership", answer.status,
                     {403}, answer.text)  # fmt: skip

    def methods(self) -> None:
        """A method that a path does not have is refused, and HEAD and OPTIONS do nothing."""
        known: dict[str, set[str]] = {}
        for rule in RULES:
            if rule.listener == "web":
                known.setdefault(rule.path, set()).add(rule.method)
        for path, methods in known.items():
            rule = next(rule for rule in RULES if rule.path == path)
            for method in METHODS:
                if method in methods or (method == "HEAD" and "GET" in methods):
                    continue
                with HttpConnection(self.platform.web) as http:
                    answer = http.exchange(written(method, self._path(rule, self.own), self.admin))
                allowed = {200, 204, *REFUSED} if method == "OPTIONS" else REFUSED
                self._expect("a method that does not exist is answered", f"{method} {path}", answer.status, allowed,
                             answer.text)  # fmt: skip
                if method == "OPTIONS" and answer.body and answer.status < 400:
                    self.findings.add(PART, "OPTIONS has a body", f"{method} {path}", answer.text)

    def spellings(self) -> None:
        """Other ways to write a path lead nowhere, with the best credential there is and with none."""
        for rule in RULES:
            if rule.method != "GET" or rule.listener != "web" or "{" in rule.path.rpartition("/")[2]:
                continue
            path = self._path(rule, self.own)
            for spelling in (path + "/", "/" + path, path.replace("/v1/", "/V1/"), path + ";a=b", path + "%00",
                             path + "/.", path + "/..;/", path.replace("/v1/", "/v1/%2e/")):  # fmt: skip
                if spelling == path:
                    continue
                for headers in (self.admin, ()):
                    with HttpConnection(self.platform.web) as http:
                        answer = http.exchange(written("GET", spelling, headers))
                    self._expect("another spelling of a path is served", f"GET {spelling}", answer.status, REFUSED,
                                 answer.text)  # fmt: skip

    def unknown_parameters(self) -> None:
        """The contract: an unknown query parameter is 400, everywhere, before anything is done."""
        for rule in RULES:
            if rule.listener == "grpc" or rule in PAGES:
                continue
            headers = self._suitable(rule) if rule.fresh != "user" else self._somebody()
            address = self.platform.web if rule.listener == "web" else self.platform.events
            path = self._path(rule, self.own)
            for query in ("dry_run=sure&unknown=1", "unknown=1"):
                body = rule.body(self.own) if rule.body else None
                with HttpConnection(address) as http:
                    answer = http.exchange(_written(rule, f"{path}?{query}", headers, body))
                allowed = {400, 401} if rule.path == "/oauth/token" else {400}
                self._expect("an unknown query parameter is ignored", f"{rule.name}?{query}", answer.status, allowed,
                             answer.text)  # fmt: skip

    def _somebody(self) -> tuple[tuple[str, str], ...]:
        """A user who may be lost."""
        subject = f"{self.own.canary}-{secrets.token_hex(4)}"
        path = f"/v1/organizations/{self.own.id}/memberships/{subject}"
        self.builder.call("PUT", path, self.admin, {"role": "member"})
        return bearer(self.builder.identity.user_token(subject, self.own.external_id, "member"))

    def strict_json(self) -> None:
        """The contract's list of what is no JSON here: 400, wherever a body is read."""
        path = f"/v1/controls/accounts/{self.own.accounts['spare_paper']}/limits"
        for name, value in STRICT.items():
            body = b'{"price_collar_bps": ' + value + b"}"
            with HttpConnection(self.platform.web) as http:
                answer = http.exchange(written("PUT", path, (*self.admin, JSON), body))
            self._expect("JSON that is not strict is taken for more than that", name, answer.status, {400}, answer.text)

    def log_lines(self) -> None:
        """What callers write reaches the log escaped: neither a terminal nor a line is theirs to command."""
        if not self.findings.chosen("log"):
            return
        word = f"seen{secrets.token_hex(6)}"
        with HttpConnection(self.platform.web) as http:
            http.exchange(written("GET", f"/v1/{word}%1b%5b31mred%0aforged%0d%c2%9b", self.admin))
        deadline = time.monotonic() + LOG_S
        while not (lines := self._log_of(word)) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.findings.count("special cells")
        if not lines:
            self.findings.add(PART, "a request is not in the log", "log", word)
        for line in lines:
            if set(line) & CONTROL or "forged" not in line:
                self.findings.add(PART, "control bytes of a caller reach the log", "log", repr(line))

    def _log_of(self, word: str) -> list[str]:
        texts = (path.read_bytes().decode(errors="replace") for path in (self.platform.home / "logs").glob("web*.log"))
        return [line for text in texts for line in text.split("\n") if word in line]

    def simulator(self) -> None:
        """The levers of the paper broker are not for every local user."""
        for path in ("/sim/faults", "/sim/ledger/summary"):
            with HttpConnection(self.platform.broker) as http:
                answer = http.exchange(written("GET", path))
            self._expect("the paper broker's levers are open to anybody", path, answer.status, {401, 403, 404}, "")

    def pages(self) -> None:
        for name, address in (("web /docs", self.platform.web), ("events /docs", self.platform.events)):
            with HttpConnection(address) as http:
                answer = http.exchange(written("GET", "/docs"))
            if self.findings.chosen(name):
                self.findings.count("special cells")
            if not answer.header("content-security-policy"):
                self.findings.add(PART, "/docs has no Content-Security-Policy", name, "")

    def _suitable(self, rule: Rule) -> tuple[tuple[str, str], ...]:
        """Somebody who may: nothing but the parameter is wrong."""
        if rule.users and "admin" in rule.users:
            return self.admin
        if rule.key:
            return self.key
        return bearer(self.builder.operator.token, self.own.id)

    def _path(self, rule: Rule, tenant: Tenant) -> str:
        """About scratch objects where there are any, since a request may do what it should not."""
        place = "spare_paper" if rule.spare else "paper"
        values = {
            "account_id": tenant.accounts[place],
            "credential_id": tenant.credentials[place],
            "intent_id": tenant.intents.get("paper", unknown_id()),
            "bulk_operation_id": tenant.bulk_operations.get("paper", unknown_id()),
            "symbol": "SPELLED" if rule.spare else tenant.symbol,
            "organization_id": tenant.id if rule.method == "GET" or rule.users else self.scratch.id,
            "subject": tenant.subject("member"),
            "key_id": tenant.key_id,
            "invitation_id": tenant.invitation_id,
            "client_id": self.client_id,
            "row_id": "0",
            "name": "controls_premium",
            "provider": "local",
            "provider_id": tenant.external_id,
        }
        path = rule.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", value)
        return path


def _written(rule: Rule, target: str, headers: tuple[tuple[str, str], ...], body: Any) -> bytes:
    sent = (*headers, *rule.headers)
    if body is None:
        return written(rule.method, target, sent)
    return written(rule.method, target, (*sent, JSON), json.dumps(body).encode())
