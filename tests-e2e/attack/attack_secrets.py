"""Secrets are planted, used and misused; then everything the platform wrote anywhere is searched for them."""

import base64
import json
import re
import secrets
import stat
import time
from collections.abc import Collection, Iterator
from itertools import chain
from urllib.parse import quote, urlsplit

from attack_findings import Findings
from attack_http import HttpConnection, NoAnswer, written
from attack_options import Size
from attack_places import environments, files, metrics, rows, valkey
from attack_platform import Platform
from attack_progress import Progress
from attack_tenants import JSON, Builder, Headers, Tenant, bearer, create, keyed, with_checksum

from chassis.services import SERVICES

PART = "secrets"
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
"""What a log line never holds but its end and tabs."""
PRIVATE_KEY = "PRIVATE KEY-----"
REFUSED_S = 120.0
# Which process may have which of the platform's own secrets in its environment: what it needs, and nothing else.
WEB = ("web", "web-2")
SEALS = (*WEB, "accounts-relay", "intents-executor", "intents-executor-2", "intents-reconciler")
NEEDED = {
    "key_encryption_key": SEALS,
    "vault_key_encryption_key": SEALS,
    "signing_key_encryption_key": WEB,
    "log_signing_key": ("intents-signer",),
    "intents_signer": ("intents-signer",),
    "paper_broker_operator_token": ("paper-broker",),
}


def run(platform: Platform, builder: Builder, size: Size, seed: int, findings: Findings, progress: Progress) -> None:
    tenant = builder.tenant("secretive")
    planted = {**_planted(builder, tenant), **_traded(platform, builder, tenant, findings)}
    planted |= {f"the broker's secret of {place}": secret for place, secret in tenant.broker_secrets.items()}
    planted["a private key"] = PRIVATE_KEY
    own = _own(platform)
    for name, answer in _misused(platform, tenant, planted):
        findings.count("error answers searched")
        _search(f"the answer to {name}", answer, planted, name, findings)
    everything = planted | own
    for place, data in chain(
        files(platform, of_postgres=size.every_caller), rows(platform.admin_url), valkey(platform), metrics(platform)
    ):
        findings.count("places searched")
        findings.count("bytes searched", len(data))
        _search(place, data, everything, None, findings)
        if place.startswith("logs/") and (odd := CONTROL.search(data)):
            around = data[max(0, odd.start() - 60) : odd.end() + 20]
            findings.add(PART, "control bytes of a caller reach the log", place, repr(around))
    for process, environment, command in environments(platform):
        findings.count("processes searched")
        held = {name: secret for name, secret in everything.items() if process not in _holders(name, everything)}
        _search(f"the environment of {process}", environment, held, None, findings)
        _search(f"the command line of {process}", command, everything, None, findings)
    _modes(platform, findings)
    findings.note("secrets planted", len(everything))


def _search(place: str, data: bytes, hidden: dict[str, str], sent: str | None, findings: Findings) -> None:
    findings.chosen(place)
    for name, secret in hidden.items():
        for form, written_so in _forms(secret):
            if written_so in data:
                findings.add(PART, f"{name} is found", f"{place}", f"{form}{f' after {sent}' if sent else ''}")


def _forms(secret: str) -> Iterator[tuple[str, bytes]]:
    raw = secret.encode()
    yield "as it is", raw
    yield "in hexadecimal", raw.hex().encode()
    yield "in hexadecimal", raw.hex().upper().encode()
    quoted = quote(secret, safe="").encode()
    if quoted != raw:
        yield "quoted", quoted
    for skipped in range(3):  # wherever in a longer text it begins
        inner = base64.b64encode(raw[skipped:])[: (len(raw) - skipped) // 3 * 4]
        yield "in base64", inner
        yield "in base64", inner.replace(b"+", b"-").replace(b"/", b"_")


def _planted(builder: Builder, tenant: Tenant) -> dict[str, str]:
    """Each used as it is meant to be: what is never used cannot leak."""
    admin, account = bearer(tenant.tokens["admin"]), tenant.accounts["paper"]
    made = builder.call("POST", "/v1/api-keys", admin, {
        "name": "planted", "environment": "paper", "permissions": ["intent:read", "account:read"]})  # fmt: skip
    builder.call("GET", f"/v1/accounts/{account}/intents", keyed(made["key"]))
    service = builder.identity.service_account(("account:read",))
    form = f"grant_type=client_credentials&client_id={service.client_id}&client_secret={service.client_secret}"
    with HttpConnection(builder.platform.web) as http:
        kind = (("Content-Type", "application/x-www-form-urlencoded"),)
        granted = http.exchange(written("POST", "/oauth/token", kind, form.encode())).json()["access_token"]
    builder.call("GET", f"/v1/accounts/{account}", bearer(granted, tenant.id))
    return {
        "an API key": made["key"],
        "another API key": tenant.api_keys["paper"],
        "a client secret": service.client_secret,
        "a service account's token": granted.rpartition(".")[2],
        "a user's token": tenant.tokens["admin"].rpartition(".")[2],
    }


def _traded(platform: Platform, builder: Builder, tenant: Tenant, findings: Findings) -> dict[str, str]:
    """Broker secrets that the executor took to the broker: the first, the one after a rotation, a refused one."""
    admin, key = bearer(tenant.tokens["admin"]), keyed(tenant.api_keys["paper"])
    kinds = ("a broker's secret", "a rotated broker's secret", "a refused broker's secret")
    planted = {name: f"broker-{secrets.token_hex(16)}" for name in kinds}
    first, rotated, refused = planted.values()
    account, credential = _with_credential(builder, admin, {"key_id": "PKplanted", "secret_key": first})
    _order(builder, account, key)
    secret = f"{account}/credentials/{credential}/secret"
    builder.call("PUT", secret, admin, {"secret": {"key_id": "PKplanted", "secret_key": rotated}})
    _order(builder, account, key)
    for name, value in (("a broker's secret", first), ("a rotated broker's secret", rotated)):
        if not _orders_at_broker(platform, "PKplanted", value):
            findings.add(PART, f"{name} was planted and never used", None, "the broker has no order under it")
    # The paper broker knows no key that begins so.
    account, credential = _with_credential(builder, admin, {"key_id": "INVALIDplanted", "secret_key": refused})
    builder.call("POST", f"{account}/intents", key, create())
    _wait_for_status("invalid", builder, f"{account}/credentials/{credential}", admin)
    return planted


def _with_credential(builder: Builder, admin: Headers, pair: dict[str, str]) -> tuple[str, str]:
    """The path of a new account, and the id of its only credential."""
    body = {"name": "planted", "broker": "paper", "environment": "paper"}
    path = f"/v1/accounts/{builder.call('POST', '/v1/accounts', admin, body)['id']}"
    made = builder.call("POST", f"{path}/credentials", admin, {"label": "planted", "secret": pair})["id"]
    return path, made


def _order(builder: Builder, account: str, key: Headers) -> None:
    made = builder.call("POST", f"{account}/intents", key, create())
    builder.wait_for("ACCEPTED", f"{account}/intents/{made['intent_id']}", key)


def _wait_for_status(status: str, builder: Builder, path: str, admin: Headers) -> None:
    deadline = time.monotonic() + REFUSED_S
    while (found := builder.call("GET", path, admin)["status"]) != status:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{path} is {found} after {REFUSED_S:g} s")
        time.sleep(0.05)


def _orders_at_broker(platform: Platform, key_id: str, secret: str) -> int:
    headers = (("APCA-API-KEY-ID", key_id), ("APCA-API-SECRET-KEY", secret))
    with HttpConnection(platform.broker) as http:
        return len(http.exchange(written("GET", "/v2/orders?status=all", headers)).json())


def _own(platform: Platform) -> dict[str, str]:
    """The platform's own: keys and passwords, as its home keeps them."""
    kept = {f"the secret {name}": value for name, value in platform.stack.secrets.items()}
    password = urlsplit(platform.stack.redis_url).password
    return kept | ({"the password of Valkey": password} if password else {})


def _holders(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The processes that need one of the platform's own secrets; a tenant's is in no environment."""
    word = name.removeprefix("the secret ")
    if word in NEEDED:
        return NEEDED[word]
    if word.endswith("_web"):
        return WEB
    if word in SERVICES:
        own = ("stream-gateway",) if word == "stream_gateway" else tuple(f"{word}-{job}" for job in JOBS)
        return own if f"the secret {word}_web" in known else (*WEB, *own)
    if word in ("cursor_key", "the password of Valkey"):
        return (*WEB, "stream-gateway", *(f"{service}-{job}" for service in SERVICES for job in JOBS))
    return ()


JOBS = ("workers", "relay", "consumer", "executor", "executor-2", "reconciler")


def _misused(platform: Platform, tenant: Tenant, planted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Where a careless server repeats what it does not understand."""
    path = f"/v1/accounts/{tenant.accounts['spare_paper']}/credentials"
    admin, secret = bearer(tenant.tokens["admin"]), planted["a broker's secret"]
    wrong = {
        "a secret as a number's place": {"label": 1, "secret": {"key_id": "a", "secret_key": secret}},
        "a secret with bad letters": {"label": "a", "secret": {"key_id": "a", "secret_key": f"\u00e9{secret}"}},
        "a secret instead of an object": {"label": "a", "secret": secret},
    }
    for name, body in wrong.items():
        yield name, _answer(platform, "POST", path, (*admin, JSON), json.dumps(body).encode())
    broken = json.dumps({"secret": {"secret_key": secret}}).encode()[:-1]
    yield "a secret in broken JSON", _answer(platform, "POST", path, (*admin, JSON), broken)
    key = planted["an API key"]
    for name, value in (
        ("a key that is too long", f"{key}x"),
        ("a key that is almost right", with_checksum(key[:-7] + "0")),
    ):
        body = json.dumps({"api_key": value}).encode()
        yield name, _answer(platform, "POST", "/api/v1/auth/api-key/validate", (JSON,), body)
        yield f"{name} as a header", _answer(platform, "GET", "/v1/auth/self", keyed(value), None)
    yield (
        "a key as an id",
        _answer(platform, "GET", f"/v1/accounts/{tenant.id}/credentials", keyed(f"{key} {key}"), None),
    )
    token = tenant.tokens["admin"]
    yield "a token twice", _answer(platform, "GET", "/v1/auth/self", bearer(f"{token} {token}"), None)


def _answer(
    platform: Platform, method: str, path: str, headers: tuple[tuple[str, str], ...], body: bytes | None
) -> bytes:
    with HttpConnection(platform.web) as http:
        try:
            answer = http.exchange(written(method, path, headers, body))
        except NoAnswer:
            return b""
    return str(answer.headers).encode() + answer.body


def _modes(platform: Platform, findings: Findings) -> None:
    """Nobody else on the machine may look into the home."""
    for path in (platform.home, platform.home / "secrets.json", platform.home / "local.json"):
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            findings.add(PART, "a file with secrets is open to others", path.name, oct(mode))
