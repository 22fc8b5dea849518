"""Tokens that must not be believed. Every variant is a 401 and never anything else."""

import base64
import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from flask.testing import FlaskClient
from jose import jwk

from identity import usecases
from identity.app import create_app
from identity.store import signing_keys
from tip_testing.identity_fixtures import IdentityFixtures
from tip_testing.platform_plugin import Platform

PATH = "/v1/auth/self"
MISSING = object()


class Mint:
    """Signs whatever it is given with identity's real key, as only identity itself could."""

    def __init__(self, identity: IdentityFixtures) -> None:
        self._deps = identity.deps
        self.subject, self.organization = "", identity.organization()
        self.subject = identity.subject(self.organization.external_id, "admin")
        with self._deps.engine.connect() as tx:
            [self.key] = signing_keys.accepted(tx)
        self.header = {"alg": "RS256", "kid": self.key.kid, "typ": "JWT"}
        now = int(time.time())
        self.claims = {
            "iss": self._deps.signer.issuer,
            "aud": self._deps.signer.audience,
            "sub": self.subject,
            "iat": now,
            "exp": now + 600,
            "org_id": self.organization.external_id,
            "principal_type": "user",
        }

    def signed(self, header: Mapping[str, Any], payload: str) -> str:
        parts = f"{encoded(json.dumps(header).encode())}.{encoded(payload.encode())}"
        signature = self._deps.signer._open(self.key).sign(parts.encode())
        return f"{parts}.{encoded(signature)}"

    def token(self, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        stated = {name: value for name, value in (self.claims | claims).items() if value is not MISSING}
        return self.signed(self.header | dict(header or {}), json.dumps(stated))

    def sealed(self, algorithm: str, secret: bytes) -> str:
        """The public key used as if it were a shared secret."""
        header = self.header | {"alg": algorithm}
        parts = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(self.claims).encode())}"
        seal = hmac.HMAC(secret, hashes.SHA256())
        seal.update(parts.encode())
        return f"{parts}.{encoded(seal.finalize())}"


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


@pytest.fixture(scope="module")
def mint(identity: IdentityFixtures) -> Mint:
    return Mint(identity)


def status(client: FlaskClient, token: str) -> int:
    return client.get(PATH, headers={"Authorization": f"Bearer {token}"}).status_code


def test_the_mint_makes_good_tokens_when_nothing_is_changed(client: FlaskClient, mint: Mint) -> None:
    assert status(client, mint.token()) == 200


@pytest.mark.parametrize(
    "algorithm",
    ["none", "None", "NONE", "nOnE", "", None, 0, [], ["RS256"], {}, "RS512", "PS256", "HS256", "ES256", "XRS256X"],
)
def test_no_other_algorithm_is_accepted_with_or_without_a_signature(
    client: FlaskClient, mint: Mint, algorithm: Any
) -> None:
    token = mint.token({"alg": algorithm})
    unsigned = token.rpartition(".")[0] + "."

    assert status(client, token) == 401
    assert status(client, unsigned) == 401
    assert status(client, unsigned.rstrip(".")) == 401


def test_the_public_key_is_no_shared_secret_in_any_of_its_forms(client: FlaskClient, mint: Mint) -> None:
    public = jwk.construct(dict(mint.key.public_jwk), "RS256").to_pem()
    key = serialization.load_pem_public_key(public)
    der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (public, public.strip(), der, json.dumps(dict(mint.key.public_jwk)).encode(), b"x"):
        assert status(client, mint.sealed("HS256", secret)) == 401
        assert status(client, mint.sealed("RS256", secret)) == 401


@pytest.mark.parametrize(
    "header",
    [
        {"kid": MISSING},
        {"kid": "unknown"},
        {"kid": ""},
        {"kid": 7},
        {"kid": ["a"]},
        {"kid": "../../../../dev/null"},
        {"kid": "' OR 1=1 --"},
        {"kid": "https://example.org/key"},
        {"kid": "k" * 5_000},
        {"crit": ["exp"]},
        {"crit": []},
        {"jku": "http://127.0.0.1:9/jwks.json"},
        {"x5u": "http://127.0.0.1:9/cert.pem"},
        {"jwk": {"kty": "oct", "k": "AA"}},
        {"x5c": ["MIIB"]},
        {"zip": "DEF"},
        {"enc": "A256GCM"},
        {"typ": "logout+jwt"},
        {"typ": 5},
    ],
)
def test_a_header_that_wants_another_way_of_verifying_refuses_the_token(
    client: FlaskClient, mint: Mint, header: dict[str, Any]
) -> None:
    changed = {name: value for name, value in (mint.header | header).items() if value is not MISSING}

    assert status(client, mint.signed(changed, json.dumps(mint.claims))) == 401


NOW = int(time.time())


@pytest.mark.parametrize(
    ("claim", "value"),
    [
        *[(claim, MISSING) for claim in ("iss", "aud", "sub", "exp", "iat")],
        *[(claim, None) for claim in ("iss", "aud", "sub", "exp", "iat")],
        *[(claim, value) for claim in ("iss", "aud", "sub") for value in ("", 7, {}, [], [7], "somebody else", True)],
        ("iss", ["https://identity.tip.local"]),
        ("aud", ["other", "another"]),
        ("sub", "s" * 300),
        ("sub", "with\x00nul"),
        ("sub", "half \ud800 pair"),
        ("org_id", 7),
        ("org_id", "with\x00nul"),
        ("org_id", ["a"]),
        ("principal_type", "admin"),
        ("principal_type", ["user"]),
        ("principal_type", {"user": True}),
        ("principal_type", "service_account"),
        pytest.param(*("exp", NOW - 60), id="exp-past"),
        pytest.param(*("exp", str(NOW + 600)), id="exp-text"),
        ("exp", True),
        ("exp", [NOW + 600]),
        pytest.param(*("iat", NOW + 3_600), id="iat-future"),
        ("iat", "now"),
        pytest.param(*("nbf", NOW + 3_600), id="nbf-future"),
        ("nbf", "soon"),
    ],
)
def test_a_wrong_or_missing_claim_refuses_the_token(client: FlaskClient, mint: Mint, claim: str, value: Any) -> None:
    assert status(client, mint.token(None, **{claim: value})) == 401


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1" * 5_000])
@pytest.mark.parametrize("claim", ["exp", "iat", "nbf"])
def test_a_time_that_is_no_number_refuses_the_token(client: FlaskClient, mint: Mint, claim: str, number: str) -> None:
    payload = json.dumps(mint.claims | {claim: "@"}).replace('"@"', number)

    assert status(client, mint.signed(mint.header, payload)) == 401


@pytest.mark.parametrize(
    "payload",
    ["[" * 2_000 + "]" * 2_000, '{"a":' * 900 + "1" + "}" * 900, "[]", "null", "7", '"text"', "", "{", "\xff"],
)
def test_a_payload_that_is_no_small_object_refuses_the_token(client: FlaskClient, mint: Mint, payload: str) -> None:
    assert status(client, mint.signed(mint.header, payload)) == 401


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token + "A",
        lambda token: token + "=",
        lambda token: token + ".",
        lambda token: token[:-1],
        lambda token: token.replace(".", "!.", 1),
        lambda token: token[:-5] + "!" + token[-5:],
        lambda token: token[:-1] + chr(ord(token[-1]) + 1),  # other letter, same bytes: one signature, one spelling
        lambda token: token + "\xa0",  # white space to Python, but no blank of HTTP
        lambda token: "\x85" + token,
        lambda token: "." + token,
        lambda token: token.split(".")[0] + "..",
        lambda token: "..",
        lambda token: "",
        lambda token: "\xff\xfe",
        lambda token: "A" * 100_000,
        lambda token: token + ".AA.AA",  # five parts are an encrypted token
    ],
)
def test_a_token_in_another_form_is_refused(client: FlaskClient, mint: Mint, change: Callable[[str], str]) -> None:
    assert status(client, change(mint.token())) == 401


def test_another_key_under_our_key_id_proves_nothing(client: FlaskClient, mint: Mint) -> None:
    parts = mint.token().rpartition(".")[0]
    own = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    signature = own.sign(parts.encode(), padding.PKCS1v15(), hashes.SHA256())

    assert status(client, f"{parts}.{encoded(signature)}") == 401


@pytest.mark.parametrize("authorization", ["Bearer", "Bearer ", "Basic YTpi", "bearer", "Token x", "", "Bearer a b"])
def test_an_authorization_header_without_a_token_is_refused(client: FlaskClient, authorization: str) -> None:
    assert client.get(PATH, headers={"Authorization": authorization}).status_code == 401


def test_two_credentials_at_once_are_refused(client: FlaskClient, mint: Mint) -> None:
    headers = {"Authorization": f"Bearer {mint.token()}", "x-api-key": mint.organization.api_keys["paper"]}

    assert client.get(PATH, headers=headers).status_code == 400


def test_a_service_accounts_token_gives_no_scope_the_account_has_not(
    client: FlaskClient, identity: IdentityFixtures
) -> None:
    account = identity.service_account(["intent:read"])
    wide = identity.service_token(account.client_id, ["intent:read", "organization:write"])

    answer = client.get(PATH, headers={"Authorization": f"Bearer {wide}"})

    assert answer.json["scopes"] == ["intent:read"]


def test_forged_tokens_are_all_refused(platform: Platform, identity: IdentityFixtures) -> None:
    """The small edition of `python -m bench.token_fuzz`."""
    fuzz = _load(Path(__file__).parents[3] / "bench" / "token_fuzz.py")
    client = create_app(platform.web_environment("identity", LOG_LEVEL="error")).test_client()
    valid = [*identity.organization().tokens.values(), identity.service_account().token]
    keys = usecases.public_keys(identity.deps)

    seed = time.time_ns()

    statuses = fuzz.attack(client, fuzz.Forger(valid, keys, seed=seed), 2_000)

    assert statuses == {401: 2_000}, f"seed {seed}"


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
