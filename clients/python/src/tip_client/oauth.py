"""OAuth 2 as a public client: discovery, the device flow of RFC 8628, the code flow with PKCE, refresh, revocation."""

import base64
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from tip_client.errors import ConfigurationError, ConnectionFailed, LoginRefused, TipError, UnexpectedAnswer
from tip_client.problems import problem_of
from tip_client.tls import tls_context
from tip_client.version import USER_AGENT

PLATFORM_CLIENT = "tip"
"""The client that every installation knows without being configured."""
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
TIMEOUT_S = 15.0
_SLOWER_S = 5.0  # RFC 8628 §3.5
_DEFAULT_INTERVAL_S = 5


@dataclass(frozen=True)
class Provider:
    """Whoever signs people in: the platform, or the OpenID Connect provider of its installation."""

    issuer: str
    token_endpoint: str
    device_endpoint: str | None
    authorization_endpoint: str | None
    revocation_endpoint: str | None


@dataclass(frozen=True)
class Tokens:
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_in: float


@dataclass(frozen=True)
class DeviceCode:
    """What a person has to do: open the address, and enter the code there."""

    verification_uri: str
    verification_uri_complete: str | None
    user_code: str
    expires_in: float
    interval: float
    device_code: str = field(repr=False)


@dataclass(frozen=True)
class CodeRequest:
    """A person is sent to `address`, and comes back to the redirect URI with a code and this state."""

    address: str
    redirect_uri: str
    state: str
    verifier: str = field(repr=False)


class OAuthClient:
    """A public client at a provider."""

    def __init__(self, client_id: str = PLATFORM_CLIENT, *, scope: str | None = None, ca: str | None = None) -> None:
        self.client_id, self._scope = client_id, scope
        headers = {"user-agent": USER_AGENT, "accept": "application/json"}
        self._http = httpx.Client(timeout=TIMEOUT_S, verify=tls_context(ca), headers=headers)

    def __enter__(self) -> "OAuthClient":
        return self

    def __exit__(self, *_error: object) -> None:
        self._http.close()

    def discover(self, url: str, *, issuer: str | None = None) -> Provider:
        """The provider's own description at this address; if `issuer` is given, it must be about that one."""
        document = self._read(lambda: self._http.get(f"{url.rstrip('/')}/.well-known/openid-configuration"))
        if issuer is not None and document.get("issuer") != issuer:
            raise UnexpectedAnswer("The provider's description is about another issuer.")
        return provider_in(document, url)

    def begin_device(self, provider: Provider) -> DeviceCode:
        if provider.device_endpoint is None:
            raise ConfigurationError("The provider has no device flow.")
        return device_code_in(self._post(provider.device_endpoint, self._scoped()))

    def await_device(
        self, provider: Provider, device: DeviceCode, sleep: Callable[[float], None] = time.sleep
    ) -> Tokens:
        """Poll until the person has decided; raises LoginRefused when there will be no tokens."""
        interval, deadline = device.interval, time.monotonic() + device.expires_in
        form = {"grant_type": DEVICE_GRANT, "device_code": device.device_code}
        while time.monotonic() < deadline:
            sleep(interval)
            try:
                return tokens_in(self._post(provider.token_endpoint, form))
            except LoginRefused as refusal:
                if refusal.code not in ("authorization_pending", "slow_down"):
                    raise
                interval += _SLOWER_S if refusal.code == "slow_down" else 0.0
            except TipError as failure:
                if not failure.is_transient:
                    raise
                interval += _SLOWER_S  # RFC 8628 §3.5: no answer is a reason to poll less often
        raise LoginRefused("expired_token", "Nobody has confirmed the code in time.")

    def begin_code(self, provider: Provider, redirect_uri: str) -> CodeRequest:
        if provider.authorization_endpoint is None:
            raise ConfigurationError("The provider has no page to sign in at.")
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {"response_type": "code", "client_id": self.client_id, "redirect_uri": redirect_uri, "state": state}
        query |= {"code_challenge": challenge, "code_challenge_method": "S256", **self._scoped()}
        if "openid" in (self._scope or "").split():
            query["nonce"] = secrets.token_urlsafe(16)  # some providers insist; the ID token with it is not used
        joint = "&" if urlsplit(provider.authorization_endpoint).query else "?"
        address = f"{provider.authorization_endpoint}{joint}{urlencode(query)}"
        return CodeRequest(address, redirect_uri, state, verifier)

    def redeem(self, provider: Provider, request: CodeRequest, answer: Mapping[str, str]) -> Tokens:
        """Tokens for what the provider sent back: only to our own request, and only if it is the one we mean."""
        if not secrets.compare_digest(answer.get("state", "").encode(), request.state.encode()):
            raise LoginRefused("invalid_state", "The answer belongs to another request.")
        if answer.get("iss", provider.issuer) != provider.issuer:  # RFC 9207
            raise LoginRefused("invalid_issuer", "The answer is another provider's.")
        if "code" not in answer:
            raise LoginRefused(answer.get("error", "access_denied"), answer.get("error_description", ""))
        form = {"grant_type": "authorization_code", "code": answer["code"], "redirect_uri": request.redirect_uri}
        return tokens_in(self._post(provider.token_endpoint, {**form, "code_verifier": request.verifier}))

    def refresh(self, token_endpoint: str, refresh_token: str) -> Tokens:
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        return tokens_in(self._post(token_endpoint, form))

    def revoke(self, revocation_endpoint: str, refresh_token: str) -> None:
        form = {"token": refresh_token, "token_type_hint": "refresh_token"}  # no secret - a kind # nosec B105
        self._post(revocation_endpoint, form)

    def _scoped(self) -> dict[str, str]:
        return {"scope": self._scope} if self._scope else {}

    def _post(self, address: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        return self._read(lambda: self._http.post(address, data={**form, "client_id": self.client_id}))

    def _read(self, send: Callable[[], httpx.Response]) -> Mapping[str, Any]:
        try:
            answer = send()
        except httpx.RequestError as error:
            raise ConnectionFailed(f"No answer from the provider ({type(error).__name__}).", was_sent=False) from None
        if answer.status_code != 200:
            raise _refusal(answer)
        return _object(answer) if answer.content else {}


def provider_in(document: Mapping[str, Any], url: str) -> Provider:
    """Addresses that are less protected than the document itself are refused."""
    names = ("token_endpoint", "device_authorization_endpoint", "authorization_endpoint", "revocation_endpoint")
    found = [_address(document.get(name), url) for name in names]
    if found[0] is None:
        raise UnexpectedAnswer("The description names no token endpoint.")
    return Provider(str(document.get("issuer", "")), found[0], *found[1:])


def _address(value: Any, url: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or urlsplit(value).scheme not in ("https", urlsplit(url).scheme):
        raise UnexpectedAnswer("The provider names an address that cannot be used.")
    return value


def device_code_in(answer: Mapping[str, Any]) -> DeviceCode:
    try:
        return DeviceCode(
            str(answer["verification_uri"]),
            answer.get("verification_uri_complete"),
            str(answer["user_code"]),
            float(answer["expires_in"]),
            float(answer.get("interval", _DEFAULT_INTERVAL_S)),
            str(answer["device_code"]),
        )
    except (KeyError, TypeError, ValueError):
        raise UnexpectedAnswer("The provider's answer has no device code.") from None


def tokens_in(answer: Mapping[str, Any]) -> Tokens:
    try:
        return Tokens(
            str(answer["access_token"]), answer.get("refresh_token"), float(answer.get("expires_in", TIMEOUT_S))
        )
    except (KeyError, TypeError, ValueError):
        raise UnexpectedAnswer("The provider's answer has no token.") from None


def _refusal(answer: httpx.Response) -> TipError:
    """An error of RFC 6749 says what is wrong; anything else is a problem like every other."""
    problem = problem_of(answer.status_code, answer.headers, answer.content)
    if answer.status_code in (400, 401, 403) and "error" in problem.members:
        return LoginRefused(str(problem.members["error"]), problem.detail)
    return problem


def _object(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise UnexpectedAnswer("The provider's answer is not JSON.")
    return document
