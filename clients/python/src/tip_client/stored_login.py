"""A login that `tip login` has stored: gives the current access token, and refreshes it when it is about to end.

A refresh token can be used once, and showing it twice ends the login. So all threads and processes that share one take
turns by a lock file, and whoever comes second finds the tokens of the first.
"""

import json
import threading
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tip_client.errors import ConfigurationError, ConnectionFailed, LoginEnded, LoginRefused, TipError
from tip_client.oauth import OAuthClient, Provider, Tokens
from tip_client.private_files import locked, require_private, write_private

EARLY_S = 30.0
"""A token is refreshed so long before it ends, or at half of its life if that is shorter."""


@dataclass(frozen=True, kw_only=True)
class Login:
    """What is in the file."""

    client_id: str
    token_endpoint: str
    revocation_endpoint: str | None
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    issued_at: float
    due_at: float
    """When the next access token is wanted; a clock that was set back is as good a reason."""

    def is_due(self, now: float) -> bool:
        return not self.issued_at <= now < self.due_at

    def renewed(self, tokens: Tokens, now: float) -> "Login":
        """A provider that does not rotate gives no new refresh token: the old one stays good."""
        return replace(
            self,
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token or self.refresh_token,
            issued_at=now,
            due_at=due_at(tokens, now),
        )


def due_at(tokens: Tokens, now: float) -> float:
    return now + max(tokens.expires_in - EARLY_S, tokens.expires_in / 2)


def new_login(client_id: str, provider: Provider, tokens: Tokens, now: float) -> Login:
    return Login(
        client_id=client_id,
        token_endpoint=provider.token_endpoint,
        revocation_endpoint=provider.revocation_endpoint,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token,
        issued_at=now,
        due_at=due_at(tokens, now),
    )


def login_file(configuration_file: Path, name: str) -> Path:
    """Beside the profiles, in a folder of its own."""
    return configuration_file.parent / "logins" / f"{quote(name, safe='')}.json"


class StoredLogin:
    """The token of a `Settings`: call it for the current one."""

    def __init__(self, file: Path, *, ca: str | None = None) -> None:
        self.file, self._ca = file, ca
        self._guard = threading.Lock()
        self._held: Login | None = None

    def __call__(self) -> str:
        """Raises LoginEnded when the person has to sign in again."""
        with self._guard:
            if self._held is None or self._held.is_due(time.time()):
                self._held = self._current()
            return self._held.access_token

    @property
    def is_due(self) -> bool:
        """Whether the next call has to read the file, or to wait for the provider."""
        return self._held is None or self._held.is_due(time.time())

    def store(self, login: Login) -> None:
        with locked(self._lock_file):
            self._write(login)

    def forget(self) -> None:
        """The lock file stays: somebody may be waiting at it."""
        self.file.unlink(missing_ok=True)

    def revoke(self) -> bool:
        """End the login at the provider; False if the provider has no way to do so."""
        with locked(self._lock_file):
            login = self.read()
            if login.revocation_endpoint is None or login.refresh_token is None:
                return False
            with OAuthClient(login.client_id, ca=self._ca) as client:
                client.revoke(login.revocation_endpoint, login.refresh_token)
        return True

    def read(self) -> Login:
        try:
            require_private(self.file)
            return Login(**json.loads(self.file.read_text()))
        except FileNotFoundError:
            raise LoginEnded("Nobody is signed in.") from None
        except (OSError, ValueError, TypeError) as error:
            raise ConfigurationError(f"{self.file} cannot be read: {type(error).__name__}.") from None

    @property
    def _lock_file(self) -> Path:
        return self.file.with_suffix(".lock")

    def _current(self) -> Login:
        login = self.read()
        if not login.is_due(time.time()):
            return login
        with locked(self._lock_file):
            login = self.read()
            return self._refreshed(login) if login.is_due(time.time()) else login

    def _refreshed(self, login: Login) -> Login:
        if login.refresh_token is None:
            raise LoginEnded("The login has run out, and its provider gave no refresh token.")
        renewed = login.renewed(self._tokens(login, login.refresh_token), time.time())
        self._write(renewed)
        return renewed

    def _tokens(self, login: Login, refresh_token: str) -> Tokens:
        """No failure here says anything of the request that the token is for: that was not sent."""
        try:
            with OAuthClient(login.client_id, ca=self._ca) as client:
                return client.refresh(login.token_endpoint, refresh_token)
        except LoginRefused as refusal:
            raise LoginEnded(f"The login has ended ({refusal.code}).") from None
        except TipError as failure:
            raise _before_sending(failure) from None

    def _write(self, login: Login) -> None:
        write_private(self.file, json.dumps(asdict(login), indent=2))


def _before_sending(failure: TipError) -> TipError:
    if not failure.is_transient:
        return failure
    unsent: Any = ConnectionFailed(f"The token could not be refreshed: {failure}", was_sent=False)
    unsent.retry_after = failure.retry_after
    return unsent  # type: ignore[no-any-return]
