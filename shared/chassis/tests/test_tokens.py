"""A signature is verified once, and never outlives its token or its key."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
from jose import jwk, jwt

from chassis import tokens

ISSUER, AUDIENCE = "https://identity.example", "tip"


@pytest.fixture(scope="module")
def private_key() -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(*form).decode()


def public_jwk(private_key: str) -> dict[str, Any]:
    return {**jwk.construct(private_key, "ES256").public_key().to_dict(), "kid": "a"}


def signed(private_key: str, *, lifetime_s: float = 600, **claims: Any) -> str:
    now = int(time.time())
    stated = {"iss": ISSUER, "aud": AUDIENCE, "sub": "somebody", "iat": now - 3600, "exp": int(now + lifetime_s)}
    return jwt.encode(stated | claims, private_key, algorithm="ES256", headers={"kid": "a"})


class Published:
    """Where keys are fetched from, with a set that can be changed."""

    def __init__(self, *keys: Mapping[str, Any]) -> None:
        self.keys = {key["kid"]: key for key in keys}
        self.hangs = threading.Event()
        self.hangs.set()

    def __call__(self) -> Mapping[str, Mapping[str, Any]]:
        self.hangs.wait()
        return dict(self.keys)


@pytest.fixture
def published(private_key: str) -> Published:
    return Published(public_jwk(private_key))


@pytest.fixture
def verifier(published: Published) -> tokens.Verifier:
    keys = tokens.CachedKeys(published, keep_s=0.0, cooldown_s=0.0)
    return tokens.Verifier(keys, issuer=ISSUER, audience=AUDIENCE)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tokens whose signature was verified, one by one."""
    seen: list[str] = []
    decode = jwt.decode

    def counted(token: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        seen.append(token)
        return decode(token, *arguments, **options)

    monkeypatch.setattr(tokens.jwt, "decode", counted)
    return seen


def test_the_signature_of_a_token_is_verified_once(
    verifier: tokens.Verifier, private_key: str, verified: list[str]
) -> None:
    token, other = signed(private_key), signed(private_key, sub="somebody else")

    subjects = [verifier.claims(sent)["sub"] for sent in (token, token, other, token)]

    assert subjects == ["somebody", "somebody", "somebody else", "somebody"]
    assert verified == [token, other]


def test_a_forged_token_is_never_remembered(verifier: tokens.Verifier, private_key: str, verified: list[str]) -> None:
    token = signed(private_key)
    verifier.claims(token)
    head, _, signature = token.split(".")
    forged = f"{head}.{signed(private_key, sub='admin').split('.')[1]}.{signature}"

    for _ in range(2):
        with pytest.raises(tokens.BadToken):
            verifier.claims(forged)

    assert verified == [token, forged, forged]


def test_a_remembered_token_ends_with_its_key(
    verifier: tokens.Verifier, published: Published, private_key: str
) -> None:
    token = signed(private_key)
    remembered = verifier.verify(token)
    published.keys = {}

    with pytest.raises(tokens.BadToken):
        verifier.claims(token)
    assert not verifier.is_current(remembered)


def test_a_remembered_token_ends_when_it_expires(verifier: tokens.Verifier, private_key: str) -> None:
    token = signed(private_key, lifetime_s=600)
    remembered: Any = verifier.verify(token).claims

    remembered["exp"] -= 600 + tokens.LEEWAY_S + 1  # instead of waiting

    with pytest.raises(tokens.BadToken):
        verifier.claims(token)


def test_what_a_caller_does_with_the_claims_changes_no_other_callers(
    verifier: tokens.Verifier, private_key: str
) -> None:
    token = signed(private_key)

    verifier.claims(token)["sub"] = "admin"

    assert verifier.claims(token)["sub"] == "somebody"


def test_only_so_many_tokens_are_remembered(
    verifier: tokens.Verifier, private_key: str, verified: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_REMEMBERED_TOKENS", 2)
    first, second, third = (signed(private_key, sub=name) for name in "abc")

    for token in (first, second, first, third, first, second):
        verifier.claims(token)

    assert verified == [first, second, third, second]


def test_whether_a_key_is_still_published_is_answered_without_waiting_for_the_provider(
    verifier: tokens.Verifier, published: Published, private_key: str
) -> None:
    remembered = verifier.verify(signed(private_key))
    published.hangs.clear()
    try:
        assert all(verifier.is_current(remembered) for _ in range(3))
    finally:
        published.hangs.set()


def test_each_issuer_verifies_its_own_tokens_again(private_key: str, published: Published) -> None:
    def verifier(issuer: str) -> tokens.Verifier:
        keys = tokens.CachedKeys(published, keep_s=300, cooldown_s=0.0)
        return tokens.Verifier(keys, issuer=issuer, audience=AUDIENCE)

    both = tokens.Verifiers(verifier(ISSUER), verifier("https://users.example"))
    theirs = both.verify(signed(private_key, iss="https://users.example"))

    assert theirs.claims["iss"] == "https://users.example"
    assert both.is_current(theirs)
