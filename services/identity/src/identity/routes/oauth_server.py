"""The authorization server: Authlib has the protocol, the use cases have the facts."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.integrations.flask_oauth2.requests import FlaskOAuth2Payload, FlaskOAuth2Request
from authlib.oauth2.rfc6749 import (
    InvalidGrantError,
    InvalidRequestError,
    InvalidScopeError,
    OAuth2Request,
    UnsupportedTokenTypeError,
)
from authlib.oauth2.rfc6749.errors import AccessDeniedError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from authlib.oauth2.rfc8628.errors import AuthorizationPendingError, ExpiredTokenError, SlowDownError
from authlib.oauth2.rfc9207 import IssuerParameter
from flask import request

from identity import model_login
from identity.routes import browser
from identity.routes.common import deps
from identity.usecases import grants

logging.getLogger("authlib").setLevel(logging.INFO)  # below that it writes tokens into the log
PUBLIC = ["none"]
"""No client has a secret: PKCE proves that who began is who ends."""
LOGIN_GRANTS = ("authorization_code", "refresh_token", DeviceCodeGrant.GRANT_TYPE)


@dataclass(frozen=True)
class Client:
    """A client as Authlib asks about it."""

    registered: model_login.Client

    def get_client_id(self) -> str:
        return self.registered.client_id

    def get_default_redirect_uri(self) -> None:
        """A request names its redirect URI, always."""

    def get_allowed_scope(self, _scope: str) -> str:
        """What a person may do is decided by their role."""
        return ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return self.registered.may_redirect_to(redirect_uri)

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method in PUBLIC

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in LOGIN_GRANTS


@dataclass(frozen=True)
class Redemption:
    """What Authlib takes for the user: whoever shows a code or token, and how the next tokens are issued for it."""

    issue: Callable[[], model_login.IssuedTokens | None]


@dataclass(frozen=True)
class Consent:
    """What a person decided on the page."""

    session: model_login.Session
    organization_id: Any


@dataclass(frozen=True)
class ShownCode:
    """An authorization code as Authlib asks about it."""

    code: model_login.AuthorizationCode
    code_challenge_method = "S256"

    @property
    def code_challenge(self) -> str:
        return self.code.code_challenge

    def get_redirect_uri(self) -> str:
        return self.code.redirect_uri

    def get_scope(self) -> str:
        return ""


class CodeGrant(AuthorizationCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = PUBLIC

    def generate_authorization_code(self) -> str:
        consent: Consent = self.request.user
        data = self.request.payload.data
        new = model_login.NewAuthorizationCode(
            self.request.client.get_client_id(), data["redirect_uri"], data["code_challenge"]
        )
        return grants.authorize_client(deps(), consent.session, consent.organization_id, new)

    def save_authorization_code(self, code: str, request: Any) -> None:
        """It was saved when it was made."""

    def query_authorization_code(self, code: str, client: Client) -> ShownCode | None:
        found = grants.find_authorization_code(deps(), client.get_client_id(), code)
        return ShownCode(found) if found else None

    def delete_authorization_code(self, authorization_code: ShownCode) -> None:
        """It was spent when the tokens were issued."""

    def authenticate_user(self, authorization_code: ShownCode) -> Redemption:
        return Redemption(lambda: grants.exchange_authorization_code(deps(), authorization_code.code))


class RequiredCodeChallenge(CodeChallenge):  # type: ignore[misc]
    """PKCE for every client, and only with S256."""

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        if grant.request.payload.data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("Send 'code_challenge' with 'code_challenge_method=S256'.")
        super().validate_code_challenge(grant, redirect_uri)


class RotatingRefreshGrant(RefreshTokenGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = PUBLIC
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> "ShownRefreshToken":
        return ShownRefreshToken(refresh_token)

    def authenticate_user(self, refresh_token: "ShownRefreshToken") -> Redemption:
        client_id = self.request.client.get_client_id()
        return Redemption(lambda: grants.refresh(deps(), client_id, refresh_token.text))

    def revoke_old_credential(self, refresh_token: "ShownRefreshToken") -> None:
        """It was spent when the next was issued."""


@dataclass(frozen=True)
class ShownRefreshToken:
    """Whose it is, is found out in the transaction that spends or revokes it."""

    text: str

    def check_client(self, _client: Client) -> bool:
        return True

    def get_scope(self) -> str:
        return ""


class DeviceGrant(DeviceCodeGrant):  # type: ignore[misc]
    TOKEN_ENDPOINT_AUTH_METHODS = PUBLIC

    def query_device_credential(self, device_code: str) -> "ShownDeviceCode":
        found = grants.poll_device(deps(), device_code)
        if found is None or found.spent:
            raise InvalidGrantError("Unknown or used 'device_code'.")
        return ShownDeviceCode(found)

    def validate_device_credential(self, credential: "ShownDeviceCode") -> Redemption:
        code = credential.code
        if code.expired:
            raise ExpiredTokenError
        if code.denied:
            raise AccessDeniedError
        if code.family_id:
            return Redemption(lambda: grants.exchange_device_code(deps(), code))
        raise SlowDownError if code.too_soon else AuthorizationPendingError


@dataclass(frozen=True)
class ShownDeviceCode:
    code: model_login.DeviceCode

    def get_client_id(self) -> str:
        return self.code.client_id

    def get_scope(self) -> str:
        return ""


class DeviceEndpoint(DeviceAuthorizationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = PUBLIC
    EXPIRES_IN = int(model_login.DEVICE_CODE_LIFETIME.total_seconds())
    INTERVAL = model_login.DEVICE_INTERVAL_S

    def get_verification_uri(self) -> str:
        return f"{browser.address()}/login/device"

    def save_device_credential(self, client_id: str, _scope: str, data: dict[str, str]) -> None:
        if not grants.begin_device(deps(), client_id, data["device_code"], data["user_code"]):
            raise InvalidRequestError("Try again.")


class Revocation(RevocationEndpoint):  # type: ignore[misc]
    CLIENT_AUTH_METHODS = PUBLIC
    SUPPORTED_TOKEN_TYPES = ("refresh_token",)

    def query_token(self, token_string: str, _token_type_hint: str | None) -> ShownRefreshToken:
        if token_string.count(".") == 2:
            raise UnsupportedTokenTypeError("An access token runs out by itself. Revoke the refresh token.")
        return ShownRefreshToken(token_string)

    def revoke_token(self, token: ShownRefreshToken, request: Any) -> None:
        grants.revoke(deps(), request.client.get_client_id(), token.text)


class Issuer(IssuerParameter):  # type: ignore[misc]
    def get_issuer(self) -> str:
        return deps().signer.issuer


class PublicRequest(FlaskOAuth2Request):  # type: ignore[misc]
    """The request as the client sent it: TLS ends at the ingress, and that the client used it is Authlib's rule."""

    def __init__(self, incoming: Any) -> None:
        address = f"{browser.address()}{incoming.full_path}"
        OAuth2Request.__init__(self, method=incoming.method, uri=address, headers=incoming.headers)
        self._request = incoming
        self.payload = FlaskOAuth2Payload(incoming)


class Server(AuthorizationServer):  # type: ignore[misc]
    def create_oauth2_request(self, _request: Any) -> PublicRequest:
        return PublicRequest(request)

    def validate_requested_scope(self, scope: str | None) -> None:
        if scope:
            raise InvalidScopeError("People's tokens have no scopes: their role decides. Leave 'scope' out.")

    def handle_error_response(self, request: Any, error: Any) -> Any:
        error.description = error.description or "See RFC 6749 and RFC 8628 for what this error means."
        return super().handle_error_response(request, error)


def _find_client(client_id: str) -> Client | None:
    found = grants.find_client(deps(), client_id)
    return Client(found) if found else None


def _issue(user: Redemption, **_: Any) -> dict[str, Any]:
    issued = user.issue()
    if issued is None:
        raise InvalidGrantError("It was used, revoked, or ran out: the person has to sign in again.")
    kind = "Bearer"
    return {
        "access_token": issued.access_token,
        "token_type": kind,
        "expires_in": issued.lifetime_s,
        "refresh_token": issued.refresh_token,
    }


def _server() -> Server:
    made = Server(query_client=_find_client, save_token=lambda _token, _request: None)
    made.register_token_generator("default", _issue)
    made.register_grant(CodeGrant, [RequiredCodeChallenge(required=True)])
    made.register_grant(RotatingRefreshGrant)
    made.register_grant(DeviceGrant)
    made.register_endpoint(DeviceEndpoint)
    made.register_endpoint(Revocation)
    made.register_extension(Issuer())
    return made


SERVER = _server()
