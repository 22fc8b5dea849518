"""Who signs people in: identity's own authorization server, or an OpenID Connect provider, found by discovery."""

import base64
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from console.api import Api, ApiProblem
from console.config import Config
from console.model import HOME, SignIn, SignInFailed, Tokens, check_id_token

CALLBACK = f"{HOME}/callback"
_LOGIN = "/login"
"""Identity's page of whoever is signed in there."""
_DEFAULT_LIFETIME_S = 300
_REFUSED = (400, 401, 403)
"""What a code or token that is not taken is answered with (RFC 6749); all else says nothing about it."""


@dataclass(frozen=True)
class Provider:
    """An authorization server with the code flow and PKCE."""

    issuer: str | None
    """What answers must name (RFC 9207), where the server says that they do."""
    authorize_url: str
    """For browsers; the others are for us."""
    token_url: str
    revoke_url: str | None
    client_id: str
    client_secret: str = field(repr=False)
    redirect_uri: str
    scopes: str
    vouched_issuer: str | None = None
    """Of ID tokens, at an OpenID Connect provider."""
    sign_out_url: str | None = None
    """Where browsers are signed out there."""

    @property
    def gives_id_tokens(self) -> bool:
        return self.vouched_issuer is not None and "openid" in self.scopes.split()

    def address(self, sign_in: SignIn) -> str:
        """Where the browser is sent."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "state": sign_in.state,
            "code_challenge": sign_in.challenge,
            "code_challenge_method": "S256",
        } | ({"scope": self.scopes} if self.scopes else {})
        query |= {"nonce": sign_in.nonce} if self.gives_id_tokens else {}
        return f"{self.authorize_url}?{urlencode(query)}"

    def exchange(self, api: Api, code: str, sign_in: SignIn, now: datetime) -> Tokens:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri}
        answer = self._answer(api, form | {"code_verifier": sign_in.verifier})
        if self.gives_id_tokens:
            claims = _claims(answer.get("id_token"))
            check_id_token(claims, str(self.vouched_issuer), self.client_id, sign_in.nonce, now)
        return _tokens(answer, now)

    def refresh(self, api: Api, token: str, now: datetime) -> Tokens:
        return _tokens(self._answer(api, {"grant_type": "refresh_token", "refresh_token": token}), now, before=token)

    def revoke(self, api: Api, token: str) -> None:
        if self.revoke_url:
            api.send("POST", self.revoke_url, {}, form=self._client() | {"token": token})

    def _answer(self, api: Api, form: dict[str, str]) -> dict[str, Any]:
        try:
            answer = api.send("POST", self.token_url, {}, form=self._client() | form, is_change=False)
        except ApiProblem as refusal:
            if refusal.status not in _REFUSED:
                raise
            raise SignInFailed from refusal
        if not (isinstance(answer, dict) and isinstance(answer.get("access_token"), str)):
            raise SignInFailed
        return answer

    def _client(self) -> dict[str, str]:
        secret = {"client_secret": self.client_secret} if self.client_secret else {}
        return {"client_id": self.client_id, **secret}


class Providers:
    """Finds the provider when it is first needed, so that the console starts while it is away."""

    def __init__(self, config: Config, api: Api) -> None:
        self._config, self._api = config, api
        self._found: Provider | None = None

    def get(self) -> Provider:
        return self._found or self.answering()

    def answering(self) -> Provider:
        """The same, if it answers: no browser is sent to one that is away."""
        self._found = self._discovered() if self._config.oidc_issuer else self._of_identity()
        return self._found

    def _of_identity(self) -> Provider:
        """Its metadata name public addresses, which the console need not be able to reach."""
        self._api.send("GET", f"{self._config.api}/.well-known/oauth-authorization-server", {})
        here, api = self._config.origin, self._config.api
        return self._made(
            None, f"{here}/oauth/authorize", f"{api}/oauth/token", f"{api}/oauth/revoke", scopes="", sign_out_url=_LOGIN
        )

    def _discovered(self) -> Provider:
        issuer = self._config.oidc_issuer.rstrip("/")
        document: dict[str, Any] = self._api.send("GET", f"{issuer}/.well-known/openid-configuration", {})
        if str(document.get("issuer", "")).rstrip("/") != issuer:
            raise SignInFailed("The provider's document names another issuer.")
        names_itself = document.get("authorization_response_iss_parameter_supported") is True
        return self._made(
            document["issuer"] if names_itself else None,
            document["authorization_endpoint"],
            document["token_endpoint"],
            document.get("revocation_endpoint"),
            scopes=self._config.scopes,
            vouched_issuer=document["issuer"],
            sign_out_url=document.get("end_session_endpoint"),
        )

    @property
    def sign_out_url(self) -> str | None:
        """As far as it is known, so that the page of somebody who has signed out needs nobody to answer."""
        if self._found is None:
            return None if self._config.oidc_issuer else _LOGIN
        return self._found.sign_out_url

    def _made(
        self, issuer: str | None, authorize: str, token: str, revoke: str | None, *, scopes: str, **more: str | None
    ) -> Provider:
        config = self._config
        return Provider(
            issuer=issuer,
            authorize_url=authorize,
            token_url=token,
            revoke_url=revoke,
            client_id=config.client_id,
            client_secret=config.client_secret,
            redirect_uri=f"{config.origin}{CALLBACK}",
            scopes=scopes,
            **more,
        )


def _tokens(answer: dict[str, Any], now: datetime, before: str | None = None) -> Tokens:
    seconds = int(answer.get("expires_in", _DEFAULT_LIFETIME_S))
    return Tokens(answer["access_token"], answer.get("refresh_token", before), now + timedelta(seconds=seconds))


def _claims(token: Any) -> dict[str, Any]:
    """What an ID token says."""
    try:
        _, payload, _ = token.split(".")
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (AttributeError, ValueError):
        raise SignInFailed from None
    return claims if isinstance(claims, dict) else {}


def now() -> datetime:
    return datetime.now(UTC)
