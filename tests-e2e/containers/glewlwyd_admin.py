"""glewlwyd, an OpenID Connect provider nobody here wrote: its administration, and how people log in to it.

Everything goes over its own interfaces: the plugin, the client, the keys and the users over the administration API, and
every login by the authorization code flow, as a browser would do it.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jose import jwk

TIMEOUT_S = 30
ISSUER = "http://glewlwyd:4593/api/oidc"
AUDIENCE = "https://tip.example"
CLIENT, CLIENT_SECRET, CALLBACK = "trading-app", "for-tests-only", "http://localhost/callback"
ROLES = {"admin": "desk-lead", "member": "trader", "read_only": "auditor"}
"""What it calls our roles; deploy/containers/glewlwyd.yml has the same."""

PLUGIN = {
    "iss": ISSUER,
    "jwt-type": "rsa",
    "jwt-key-size": "256",
    "jwks-show": True,
    "access-token-duration": 3600,
    "refresh-token-duration": 86400,
    "code-duration": 600,
    "refresh-token-rolling": False,
    "allow-non-oidc": False,
    "auth-type-code-enabled": True,
    "auth-type-token-enabled": False,
    "auth-type-id-token-enabled": True,
    "auth-type-password-enabled": False,
    "auth-type-client-enabled": False,
    "auth-type-refresh-enabled": False,
    "subject-type": "public",
    "resource-allowed": True,
    "resource-client-property": "resource",
    "resource-scope-and-client-property": False,
    "resource-scope": {},
    "additional-parameters": [{"user-parameter": name, "token-parameter": name} for name in ("company", "desk_role")],
}


@dataclass(frozen=True)
class Glewlwyd:
    url: str
    api_key: str

    def configure(self) -> None:
        """One OpenID Connect plugin, one client, and users who have a company and a role there. Once is enough."""
        if self._request("GET", "mod/plugin/oidc").ok:
            return
        self.administer("POST", "mod/plugin/", plugin(signing_key()))
        users = self.administer("GET", "mod/user/database").json()
        allowed = {"multiple": False, "read": True, "write": True, "profile-read": True, "profile-write": False}
        users["parameters"]["data-format"] |= {"company": allowed, "desk_role": allowed}
        self.administer("PUT", "mod/user/database", users)
        self.administer("PUT", "mod/user/database/reset")
        client = {
            "client_id": CLIENT,
            "name": "A trading application",
            "confidential": True,
            "password": CLIENT_SECRET,
            "client_secret": CLIENT_SECRET,
            "enabled": True,
            "redirect_uri": [CALLBACK],
            "authorization_type": ["code"],
            "scope": ["openid"],
            "resource": [AUDIENCE],
            "token_endpoint_auth_method": ["client_secret_basic"],
        }
        self.administer("POST", "client/", client)

    def add_user(self, name: str, company: str | None = None, role: str | None = None) -> None:
        user = {"username": name, "name": name, "password": password_of(name), "enabled": True, "scope": ["openid"]}
        stated = {"company": company, "desk_role": ROLES.get(role) if role else None}
        self.administer("POST", "user/", user | {key: value for key, value in stated.items() if value})

    def has_user(self, name: str) -> bool:
        answer = self._request("GET", f"user/{name}")
        assert answer.status_code in (200, 404), answer.text
        return answer.status_code == 200

    def delete_user(self, name: str) -> None:
        self.administer("DELETE", f"user/{name}")

    def login(self, name: str, resource: str | None = AUDIENCE) -> str:
        """A person logs in, agrees, and their application gets an access token for `resource`."""
        with requests.Session() as browser:
            entered = {"username": name, "password": password_of(name)}
            answered(browser.post(f"{self.url}/api/auth/", json=entered, timeout=TIMEOUT_S))
            answered(browser.put(f"{self.url}/api/auth/grant/{CLIENT}", json={"scope": "openid"}, timeout=TIMEOUT_S))
            named = {"resource": resource} if resource else {}
            wanted = {
                "response_type": "code",
                "client_id": CLIENT,
                "redirect_uri": CALLBACK,
                "scope": "openid",
                **named,
            }
            sent_back = browser.get(
                f"{self.url}/api/oidc/auth",
                params={**wanted, "state": uuid4().hex, "nonce": uuid4().hex, "g_continue": ""},
                allow_redirects=False,
                timeout=TIMEOUT_S,
            )
        code = parse_qs(urlsplit(sent_back.headers["Location"]).query)["code"][0]
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, **named}
        given = requests.post(f"{self.url}/api/oidc/token", data=form, auth=(CLIENT, CLIENT_SECRET), timeout=TIMEOUT_S)
        return str(answered(given).json()["access_token"])

    @property
    def keys(self) -> list[dict[str, str]]:
        """Its signing keys, private parts and all."""
        parameters = self.administer("GET", "mod/plugin/oidc").json()["parameters"]
        return list(json.loads(parameters["jwks-private"])["keys"])

    def rotate(self, *kept: dict[str, str]) -> None:
        """Sign with a new key from now on, and publish these old ones beside it."""
        self.administer("PUT", "mod/plugin/oidc", plugin(signing_key(), *kept))
        self.administer("PUT", "mod/plugin/oidc/reset")

    def administer(self, method: str, path: str, body: Any = None) -> requests.Response:
        return answered(self._request(method, path, body))

    def _request(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(
            method,
            f"{self.url}/api/{path}",
            json=body,
            headers={"Authorization": f"token {self.api_key}"},
            timeout=TIMEOUT_S,
        )


def plugin(*keys: dict[str, str]) -> dict[str, Any]:
    """The first key signs, and all are published."""
    parameters = {**PLUGIN, "jwks-private": json.dumps({"keys": keys})}
    return {"module": "oidc", "name": "oidc", "display_name": "oidc", "order_rank": 0, "parameters": parameters}


def password_of(name: str) -> str:
    return f"{name}-for-tests-only"


def answered(answer: requests.Response) -> requests.Response:
    assert answer.ok, f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    return answer


def signing_key() -> dict[str, str]:
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    parts = jwk.construct(private.decode(), "RS256").to_dict()
    return {**parts, "kid": uuid4().hex, "alg": "RS256", "use": "sig"}


def with_their_users(provider: Glewlwyd, local: dict[str, Any]) -> dict[str, Any]:
    """What `local.json` says, with everyone of the demo made a user of the provider and logged in there."""

    def logged_in(name: str, company: str | None = None, role: str | None = None) -> str:
        if not provider.has_user(name):
            provider.add_user(name, company, role)
        return provider.login(name)

    organizations = {
        name: {
            **found,
            "tokens": {role: logged_in(f"{name}-{role.replace('_', '-')}", name, role) for role in found["tokens"]},
        }
        for name, found in local["organizations"].items()
    }
    return {**local, "organizations": organizations, "tokens": {"user_without_organization": logged_in("wanderer")}}
