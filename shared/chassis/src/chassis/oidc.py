"""The public keys of an OpenID Connect provider, found by discovery. Every service verifies users' tokens with them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import requests

from chassis import strict_json, tokens

KEYS_KEPT_S = 300.0
COOLDOWN_S = 10.0  # tokens with invented key ids must not become requests to the provider
TIMEOUT_S = 3.0
_LONGEST = 256 * 1024


class BadProvider(Exception):
    """What the provider publishes cannot be used."""


def provider_keys(issuer: str, *, keep_s: float = KEYS_KEPT_S, cooldown_s: float = COOLDOWN_S) -> tokens.CachedKeys:
    return tokens.CachedKeys(lambda: _keys(issuer), keep_s=keep_s, cooldown_s=cooldown_s)


def discover(issuer: str) -> Mapping[str, Any]:
    """The provider's own description, if it is the description of this issuer."""
    found = fetch(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
    if found.get("issuer") != issuer:
        raise BadProvider("the document is about another issuer")
    return found


def endpoint(description: Mapping[str, Any], name: str) -> str:
    """An address the provider names; one less protected than the provider itself is refused."""
    address = description.get(name)
    if not isinstance(address, str) or urlsplit(address).scheme not in (
        "https",
        urlsplit(description["issuer"]).scheme,
    ):
        raise BadProvider(f"no usable {name}")
    return address


def fetch(url: str) -> Mapping[str, Any]:
    """A small JSON object from exactly this address."""
    with requests.get(url, timeout=TIMEOUT_S, allow_redirects=False, stream=True) as answer:
        if answer.status_code != requests.codes.ok:
            raise BadProvider(f"status {answer.status_code}")
        body = b""
        for part in answer.iter_content(_LONGEST):
            body += part
            if len(body) > _LONGEST:
                raise BadProvider("the answer is too long")
    document = strict_json.loads(body)
    if not isinstance(document, dict):
        raise BadProvider("the answer is not an object")
    return document


def _keys(issuer: str) -> Mapping[str, Mapping[str, Any]]:
    listed = fetch(endpoint(discover(issuer), "jwks_uri")).get("keys")
    if not isinstance(listed, list):
        raise BadProvider("no keys")
    usable = [key for key in listed if isinstance(key, dict) and _may_sign(key)]
    return {key["kid"]: key for key in usable}


def _may_sign(key: Mapping[str, Any]) -> bool:
    """Providers list keys for other uses and of other kinds beside the ones that sign."""
    return isinstance(key.get("kid"), str) and key.get("kty") in ("RSA", "EC") and key.get("use", "sig") == "sig"
