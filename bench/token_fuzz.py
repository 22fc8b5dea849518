"""100 000 forged tokens against identity: none may be accepted, none may cause an error.

    python -m bench.token_fuzz [--count 100000] [--seed 1]

Every token is made from valid ones without the private key: characters changed, parts swapped, headers and claims
rewritten, signed with other keys and other algorithms. They go through the whole application, as a caller's would.
"""

import argparse
import base64
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

PATH = "/v1/auth/self"
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 1e308, "", "x", "0", " ", "\x00", "\ud800", "a" * 300,
    [], [1], ["tip"], {}, {"a": 1}, "none", "tip", "../../etc/passwd", "' OR 1=1 --", float("nan"), float("inf"),
)  # fmt: skip
ALGORITHMS = (
    "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA",
    "RS256 ", "rs256", "XRS256X", "dir", "A256KW", None, 0, [], ["RS256"], {"RS256": 1},
)  # fmt: skip
HEADERS: Mapping[str, tuple[Any, ...]] = {
    "kid": (None, "", "unknown", "../../dev/null", "https://example.org/key", "a" * 10_000, 1, [], {}),
    "crit": (["exp"], ["b64"], [], "exp"),
    "jku": ("https://example.org/jwks.json",),
    "x5u": ("https://example.org/cert.pem",),
    "jwk": ({"kty": "oct", "k": "AA"},),
    "x5c": (["MIIB"],),
    "zip": ("DEF",),
    "typ": ("JWE", "logout+jwt", 1, []),
    "b64": (False,),
}
CLAIMS = ("iss", "aud", "sub", "exp", "iat", "nbf", "jti", "scope", "principal_type", "org_id", "org_role")
CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ ,:;!~%&'\"{}[]\xa0\xff"


def encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def part(value: Any) -> str:
    return encoded(json.dumps(value).encode("utf-8", "surrogatepass"))


class Forger:
    """Makes tokens that are nearly valid. It has valid ones and the public keys, as an attacker may."""

    def __init__(self, valid: Sequence[str], public_jwks: Sequence[Mapping[str, Any]], seed: int) -> None:
        self._valid, self._random = tuple(valid), random.Random(seed)
        self._own_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._secrets = [secret for key in public_jwks for secret in _as_secrets(key)]
        self._ways: tuple[Callable[[list[str]], str], ...] = (
            self._characters, self._cut, self._swap, self._header, self._claims, self._sign_otherwise,
            self._sign_with_own_key, self._nest, self._noise,
        )  # fmt: skip

    def tokens(self) -> Iterator[str]:
        while True:
            token = self._random.choice(self._ways)(self._random.choice(self._valid).split("."))
            if token.strip() not in self._valid:  # blanks around a token belong to the header
                yield token

    def _characters(self, parts: list[str]) -> str:
        token = list(".".join(parts))
        for _ in range(self._random.choice((1, 1, 1, 2, 5))):
            place = self._random.randrange(len(token))
            edit = self._random.randrange(3)
            character = self._random.choice(CHARACTERS)
            token[place : place + (edit != 1)] = [] if edit == 0 else [character]
        return "".join(token)

    def _cut(self, parts: list[str]) -> str:
        token = ".".join(parts)
        start, end = sorted(self._random.sample(range(len(token) + 1), 2))
        return self._random.choice((token[start:end], token[:start] + token[end:], token + token[start:end]))

    def _swap(self, _parts: list[str]) -> str:
        mixed = [self._random.choice(self._valid).split(".")[place] for place in range(3)]
        self._random.shuffle(mixed)
        return ".".join(mixed[: self._random.choice((1, 2, 3, 3, 3))] + [""] * self._random.choice((0, 0, 1)))

    def _header(self, parts: list[str]) -> str:
        return ".".join((part(self._forged_header(parts)), parts[1], self._random.choice((parts[2], "", "AA"))))

    def _forged_header(self, parts: list[str]) -> Any:
        header = json.loads(decoded(parts[0]))
        if self._random.random() < 0.5:
            return header | {"alg": self._random.choice(ALGORITHMS)}
        name = self._random.choice(tuple(HEADERS))
        return header | {name: self._random.choice(HEADERS[name])}

    def _forged_claims(self, parts: list[str]) -> Any:
        claims = json.loads(decoded(parts[1]))
        name = self._random.choice(CLAIMS)
        if self._random.random() < 0.3:
            claims.pop(name, None)
        else:
            claims[name] = self._random.choice(ODD_VALUES)
        return claims | {"forged": self._random.random()}

    def _claims(self, parts: list[str]) -> str:
        return ".".join((parts[0], part(self._forged_claims(parts)), parts[2]))

    def _sign_otherwise(self, parts: list[str]) -> str:
        """The public key taken as a shared secret, or no signature at all."""
        header = json.loads(decoded(parts[0])) | {"alg": self._random.choice(("HS256", "none", "RS256"))}
        signed = f"{part(header)}.{part(self._forged_claims(parts))}"
        seal = hmac.HMAC(self._random.choice(self._secrets), hashes.SHA256())
        seal.update(signed.encode())
        return f"{signed}.{encoded(seal.finalize())}"

    def _sign_with_own_key(self, parts: list[str]) -> str:
        signed = f"{parts[0]}.{part(self._forged_claims(parts))}"
        signature = self._own_key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{encoded(signature)}"

    def _nest(self, parts: list[str]) -> str:
        depth = self._random.choice((10, 500, 2_000))
        deep = self._random.choice(('{"a":' * depth + "1" + "}" * depth, "[" * depth + "]" * depth))
        place = self._random.randrange(2)
        parts[place] = encoded(deep.encode())
        return ".".join(parts)

    def _noise(self, _parts: list[str]) -> str:
        length = self._random.choice((0, 1, 10, 200, 9_000))
        noise = "".join(self._random.choice(CHARACTERS) for _ in range(length))
        return self._random.choice((noise, f"{noise}.{noise}.{noise}", "." * length))


def _as_secrets(public_jwk: Mapping[str, Any]) -> list[bytes]:
    numbers = rsa.RSAPublicNumbers(*(int.from_bytes(decoded(public_jwk[name]), "big") for name in ("e", "n")))
    public = numbers.public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return [
        public.public_bytes(serialization.Encoding.PEM, form),
        public.public_bytes(serialization.Encoding.DER, form),
        json.dumps(dict(public_jwk)).encode(),
        decoded(public_jwk["n"]),
        b"x",
    ]


def attack(client: Any, forger: Forger, count: int) -> Counter[int]:
    """How many tokens got which status."""
    statuses: Counter[int] = Counter()
    for _, token in zip(range(count), forger.tokens(), strict=False):
        answer = client.get(PATH, headers={"Authorization": f"Bearer {token}"})
        statuses[answer.status_code] += 1
        if answer.status_code != 401:
            print(answer.status_code, repr(token[:500]))
    return statuses


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    from identity.app import create_app
    from tip_testing.identity_fixtures import IdentityFixtures

    quiet = {"LOG_LEVEL": "error", "RATE_LIMIT_PER_MINUTE": "100000000"}
    with tempfile.TemporaryDirectory(prefix="tip-") as directory, _servers(Path(directory)) as platform:
        identity = IdentityFixtures(platform.administrator_environment("identity"))
        client = create_app(platform.web_environment("identity", **quiet)).test_client()
        valid = [*identity.organization().tokens.values(), identity.service_account().token]
        assert all(client.get(PATH, headers={"Authorization": f"Bearer {token}"}).status_code == 200 for token in valid)
        keys = client.get("/.well-known/jwks.json").json["keys"]
        began = time.monotonic()
        statuses = attack(client, Forger(valid, keys, chosen.seed), chosen.count)
        seconds = time.monotonic() - began
        identity.close()
    accepted = sum(number for status, number in statuses.items() if status < 400)
    errors = sum(number for status, number in statuses.items() if status >= 500)
    print(f"{chosen.count} forged tokens in {seconds:.0f} s: {accepted} accepted, {errors} errors, {dict(statuses)}")
    return 0 if statuses == {401: chosen.count} else 1


def _servers(directory: Path) -> Any:
    from contextlib import contextmanager

    from chassis import migrations
    from tip_local.postgres import EmbeddedPostgres, create_database
    from tip_local.valkey import EmbeddedValkey
    from tip_testing.platform_plugin import ROLES, Platform

    @contextmanager
    def running() -> Iterator[Platform]:
        with (
            EmbeddedPostgres(directory / "postgres", fast=True) as postgres,
            EmbeddedValkey(directory / "valkey", fast=True) as valkey,
        ):
            create_database(postgres.url, "fuzz")
            url = postgres.url_of("fuzz")
            migrations.migrate(url, dict.fromkeys(ROLES, "for-tests-only"))
            yield Platform(url, valkey.url)

    return running()


if __name__ == "__main__":
    sys.exit(main())
