"""Any OpenID Connect provider. Users are deleted by SCIM 2.0, or at an address the provider's administrators have."""

from dataclasses import dataclass, field
from urllib.parse import quote

import requests

from chassis import logs, oidc
from identity.providers import NotDeleted, Unconfirmed

log = logs.get(__name__)

TIMEOUT_S = (2.0, 5.0)  # to connect, to answer
_GONE = (200, 202, 204, 404, 410)
# The provider says that it has not tried; any other failure may have come after the deed.
_NOT_TRIED = (400, 401, 403, 405, 409, 412, 415, 422, 429, 503)


@dataclass(frozen=True)
class OidcProvider:
    name: str
    issuer: str
    delete_url: str
    """Where a user is deleted; `{subject}` stands for the user."""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    vouches: bool = True

    def subject(self, name: str) -> str:
        """The provider's own id, to the letter."""
        return name

    def delete_user(self, subject: str) -> None:
        if subject in (".", ".."):
            raise NotDeleted("as a part of a path this would name another resource")
        url = self.delete_url.replace("{subject}", quote(subject, safe=""))
        authorization = self._authorization()
        try:
            answer = requests.delete(url, headers=authorization, timeout=TIMEOUT_S, allow_redirects=False)
        except requests.ConnectTimeout as error:
            raise NotDeleted(type(error).__name__) from error
        except requests.ConnectionError as error:
            raise (NotDeleted if _never_connected(error) else Unconfirmed)(type(error).__name__) from error
        except requests.RequestException as error:
            raise Unconfirmed(type(error).__name__) from error
        if answer.status_code in _GONE:
            return
        log.warning("provider_did_not_delete", status=answer.status_code)
        raise (NotDeleted if answer.status_code in _NOT_TRIED else Unconfirmed)(f"status {answer.status_code}")

    def _authorization(self) -> dict[str, str]:
        """The configured token, or one fetched as the provider's client; nothing is deleted without either."""
        if not self.client_id:
            # Administration APIs have schemes of their own (`token …`, `SSWS …`); a token alone is a bearer's.
            return {"Authorization": self.token if " " in self.token else f"Bearer {self.token}"}
        try:
            address = oidc.endpoint(oidc.discover(self.issuer), "token_endpoint")
            answer = requests.post(
                address,
                data={"grant_type": "client_credentials"},
                auth=(self.client_id, self.client_secret),
                timeout=TIMEOUT_S,
                allow_redirects=False,
            )
            answer.raise_for_status()
            authorization = "Bearer " + answer.json()["access_token"]
            authorization.encode("ascii")  # what is no text, or none that a header can hold, is no token
            return {"Authorization": authorization}
        except (requests.RequestException, oidc.BadProvider, ValueError, KeyError, TypeError) as error:
            log.warning("provider_gave_no_token", error=type(error).__name__)
            raise NotDeleted(type(error).__name__) from error


def _never_connected(error: requests.ConnectionError) -> bool:
    """Whether the connection was refused outright, so that the request cannot have reached anybody."""
    cause = error.args[0] if error.args else None
    reason = getattr(cause, "reason", cause)
    return type(reason).__name__ in ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError")
