"""How a good credential is turned into one that proves nothing."""

import base64
import hashlib
import hmac
import json
import random
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from attack_tenants import with_checksum
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa


def mangled_key(dice: random.Random, key: str) -> str:
    place = dice.randrange(len(key) - 6)
    letter = dice.choice("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    flipped = key[:place] + (letter if letter != key[place] else "~") + key[place + 1 :]
    other = key.replace("_paper_", "_live_") if "_paper_" in key else key.replace("_live_", "_paper_")
    return dice.choice((flipped, with_checksum(flipped[:-6]), key[:-1], key + "0", key.swapcase(), other,
                        with_checksum(other[:-6]), key[:14], hashlib.sha256(key.encode()).hexdigest(),
                        f"{key},{key}", key.upper()))  # fmt: skip


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    head, payload, signature = token.split(".")
    return json.loads(_decoded(head)), json.loads(_decoded(payload)), signature


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _joined(head: Mapping[str, Any], claims: Mapping[str, Any], signature: str) -> str:
    return f"{_coded(json.dumps(head).encode())}.{_coded(json.dumps(claims).encode())}.{signature}"


def _nonce(dice: random.Random) -> str:
    """Stands in a claim or a header that nobody reads, so that no two credentials are the same."""
    return f"{dice.getrandbits(64):016x}"


def _anew(dice: random.Random, claims: Mapping[str, Any]) -> dict[str, Any]:
    return {**claims, "jti": _nonce(dice)}


@cache
def _stranger() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _signed(head: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
    """By a key that nobody here knows."""
    unsigned = _joined(head, claims, "").rstrip(".")
    signature = _stranger().sign(unsigned.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{unsigned}.{_coded(signature)}"


def _none(dice: random.Random, token: str, _key: Mapping[str, Any]) -> str:
    head, claims, signature = _parts(token)
    word = dice.choice(("none", "None", "NONE", "nOnE", "", None, ["none"], ["RS256"], 0, "RS256 ", "XRS256X"))
    return _joined({**head, "alg": word, "nonce": _nonce(dice)}, claims, dice.choice(("", signature, "AA")))


def _confused(dice: random.Random, token: str, public: Mapping[str, Any]) -> str:
    """The public key as the secret of an HMAC."""
    head, claims, _ = _parts(token)
    name = dice.choice(("HS256", "HS384", "HS512"))
    forms = (
        json.dumps(dict(public)).encode(),
        str(public["n"]).encode(),
        _decoded(str(public["n"])),
        b"",
        _pem(str(public["e"]), str(public["n"])),
    )
    unsigned = _joined({**head, "alg": name}, _anew(dice, claims), "").rstrip(".")
    digest = {"HS256": "sha256", "HS384": "sha384", "HS512": "sha512"}[name]
    return f"{unsigned}.{_coded(hmac.new(dice.choice(forms), unsigned.encode(), digest).digest())}"


@cache
def _pem(exponent: str, modulus: str) -> bytes:
    numbers = rsa.RSAPublicNumbers(int.from_bytes(_decoded(exponent)), int.from_bytes(_decoded(modulus)))
    return numbers.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _strangers(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    head, claims, _ = _parts(token)
    kids = (
        head["kid"],
        "0" * 16,
        "../../../dev/null",
        "' OR 1=1 --",
        "http://127.0.0.1/jwks.json",
        "k" * 4_000,
        "",
        None,
        7,
    )
    return _signed({**head, "kid": dice.choice(kids)}, _anew(dice, claims))


def _offered(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    """With the stranger's own key in the header, or the place where it can be had."""
    head, claims, _ = _parts(token)
    numbers = _stranger().public_key().public_numbers()
    jwk = {"kty": "RSA", "e": "AQAB", "n": _coded(numbers.n.to_bytes(256)), "kid": head["kid"]}
    offer = dice.choice(({"jwk": jwk}, {"jku": "http://127.0.0.1:1/jwks.json"}, {"x5u": "http://127.0.0.1:1/c.pem"},
                         {"x5c": ["MIIB"]}, {"crit": ["exp"]}, {"zip": "DEF"},
                         {"enc": "A256GCM", "alg": "dir"}))  # fmt: skip
    return _signed({**head, **offer}, _anew(dice, claims))


def _other_claims(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    """Rewritten under the old signature, or signed by the stranger."""
    head, claims, signature = _parts(token)
    now = int(time.time())
    change = dice.choice((
        {"org_role": "admin"}, {"sub": "root"}, {"exp": now + 10**9}, {"exp": 1e308}, {"exp": "never"}, {"exp": None},
        {"aud": "other"}, {"aud": ["tip", "other"]}, {"iss": "https://other.test"}, {"iat": now + 10**6},
        {"nbf": now + 10**6}, {"principal_type": "service_account"}, {"scope": "organization:write"}, {"sub": ["a"]},
        {"org_id": "acme"}, {"sub": {}}, {"exp": True}, {"principal_type": "api_key"},
    ))  # fmt: skip
    forged = _anew(dice, {**claims, **change})
    return _signed(head, forged) if dice.random() < 0.3 else _joined(head, forged, signature)


def _flipped(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    place = dice.randrange(len(token))
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    letter = dice.choice([letter for letter in letters if letter != token[place]])
    return token[:place] + letter + token[place + 1 :]


def _cut(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    """At its end, and mostly at its beginning, too: good tokens begin alike."""
    start = dice.randrange(1, len(token) // 2) if dice.random() < 0.9 else 0
    return token[start : dice.randrange(start + 1, len(token) - 1)]


def _shuffled(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    head, payload, signature = token.split(".")
    other, noise = _coded(json.dumps(_anew(dice, _parts(token)[1])).encode()), _nonce(dice)
    return dice.choice((f"{other}.{head}.{signature}", f"{head}.{other}.", f"{head}.{other}",
                        f"{token}.{noise}", f"{token}.{signature}{noise}",
                        f".{other}.{signature}", f"{head}..{noise}{signature}", f"{token}{noise}", f"{noise}{token}",
                        f"{token}{'=' * dice.randrange(1, 2_000)}", f"{token}{'.' * dice.randrange(1, 2_000)}",
                        f"{head}.{other}.{signature[::-1]}", f"{head}/{other}/{signature}", f"{token[::-1]}{noise}",
                        token * 2 + noise, f"{head}.{other}.{'A' * 342}", f"{noise}.b.c", f"...{noise}",
                        f"{token}{'A' * dice.randrange(8_000, 9_000)}{noise}", f"{head}=.{other}.{signature}",
                        f"{head}.{payload}.{noise}{signature[16:]}"))  # fmt: skip


def _deep(dice: random.Random, token: str, _public: Mapping[str, Any]) -> str:
    """JSON that hurts to read, in the head or in the claims."""
    head, claims, signature = _parts(token)
    nested = _coded(
        dice.choice((b"[" * 3_000, b'{"a":' * 800, b'{"alg":"RS256","alg":"none"}', b"\xff\xfe", b"NaN", b"{}"))
    )
    if dice.random() < 0.5:
        return f"{nested}.{_coded(json.dumps(_anew(dice, claims)).encode())}.{signature}"
    return f"{_coded(json.dumps({**head, 'nonce': _nonce(dice)}).encode())}.{nested}.{signature}"


MISCHIEF: dict[str, Callable[[random.Random, str, Mapping[str, Any]], str]] = {
    "alg none": _none,
    "algorithm confusion": _confused,
    "another's signature": _strangers,
    "key offered in the header": _offered,
    "other claims": _other_claims,
    "one letter flipped": _flipped,
    "cut short": _cut,
    "parts shuffled": _shuffled,
    "malformed JSON": _deep,
}
