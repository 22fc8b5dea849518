"""Where the platform is and who calls: from the caller, the environment, or a profile in the user's configuration."""

import os
import tomllib
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tip_client.errors import ConfigurationError
from tip_client.headers import is_header_value
from tip_client.private_files import require_private
from tip_client.stored_login import StoredLogin, login_file

LOCAL_URL = "http://127.0.0.1:8080"
LOCAL_STREAM_PORT = 9090
_NAMES = ("url", "key", "token", "organization", "account", "events_url", "stream_target", "ca")
"""Each is `TIP_<NAME>` in the environment and `<name>` in a profile."""
_PROFILE = (*_NAMES, "login")
_ADDRESSES = {"url", "events_url", "stream_target"}
_CREDENTIALS = {"key", "token", "login"}
_SECONDS = {"timeout", "deadline"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a client is made of. Credentials are never shown."""

    url: str = LOCAL_URL
    key: str | None = field(default=None, repr=False)
    """An API key."""
    token: str | Callable[[], str] | None = field(default=None, repr=False)
    """A bearer token of a user or service account, or what returns the current one."""
    organization: str | None = None
    """For service accounts: the organization whose accounts are meant."""
    account: str | None = None
    """The trading account that is meant where a call names none."""
    events_url: str | None = None
    """Where Server-Sent Events are, if not where the API's document says."""
    stream_target: str | None = None
    """Where gRPC is: host and port."""
    ca: str | None = None
    """A file with the certificate authority of the platform, if the system does not know it."""
    timeout: float = 15.0
    """Seconds for one attempt."""
    deadline: float = 30.0
    """Seconds after which no attempt at a request begins any more."""

    def __post_init__(self) -> None:
        for url in (self.url, self.events_url or self.url):
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
                raise ConfigurationError("An address is http:// or https://, a host, and nothing secret.")
        if self.key and self.token:
            raise ConfigurationError("Give a key or a token, not both: the platform takes one credential.")
        for shown in (self.key, self.token, self.organization):
            if isinstance(shown, str) and not is_header_value(shown):
                raise ConfigurationError("A credential or organization has a character that no header can hold.")

    @classmethod
    def from_env(cls, profile: str | None = None, environment: Mapping[str, str] | None = None) -> "Settings":
        """From `TIP_URL`, `TIP_KEY`, `TIP_ACCOUNT` and so on, and what these leave open from a profile."""
        env = os.environ if environment is None else environment
        named = {name: env[f"TIP_{name.upper()}"] for name in _NAMES if env.get(f"TIP_{name.upper()}")}
        file = configuration_file(env)
        found = _left_open(_profile(file, profile or env.get("TIP_PROFILE")), named.keys())
        return cls(**{**_with_login(file, found), **named})

    def headers(self) -> dict[str, str]:
        """What shows the platform who calls."""
        token = self.token() if callable(self.token) else self.token
        shown = {"x-api-key": self.key, "authorization": f"Bearer {token}" if token else None}
        shown["x-organization-id"] = self.organization
        return {name: value for name, value in shown.items() if value}

    @property
    def grpc_target(self) -> str:
        """The address of the API where that is TLS, as the ingress has all on one port; else the port of `make up`."""
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        port = (parts.port or 443) if self.is_secure else LOCAL_STREAM_PORT
        return self.stream_target or f"{host}:{port}"

    @property
    def is_secure(self) -> bool:
        return urlsplit(self.url).scheme == "https"


def configuration_file(env: Mapping[str, str]) -> Path:
    """`tip/config.toml` in the user's configuration folder."""
    if folder := env.get("XDG_CONFIG_HOME") or env.get("APPDATA"):
        return Path(folder) / "tip" / "config.toml"
    return Path(env.get("HOME") or Path.home()) / ".config" / "tip" / "config.toml"


def _profile(file: Path, name: str | None) -> dict[str, Any]:
    document = _document(file)
    chosen = name or document.get("default")
    if chosen is None:
        return {}
    profiles = document.get("profiles")
    profile = profiles.get(str(chosen)) if isinstance(profiles, dict) else None
    if not isinstance(profile, dict):
        raise ConfigurationError(f"{file} has no profile {chosen!r}.")
    for setting, value in profile.items():
        if not (
            isinstance(value, int | float) if setting in _SECONDS else setting in _PROFILE and isinstance(value, str)
        ):
            raise ConfigurationError(f"Profile {chosen!r} in {file}: {setting!r} is no setting, or no such value.")
    return profile


def _left_open(profile: Mapping[str, Any], named: Set[str]) -> dict[str, Any]:
    """The profile's credential is for the profile's addresses, and these and their authority belong together."""
    closed = _CREDENTIALS if named & (_ADDRESSES | _CREDENTIALS) else set()
    if "url" in named:
        closed = closed | _ADDRESSES | {"ca"}
    return {name: value for name, value in profile.items() if name not in closed}


def _with_login(file: Path, found: dict[str, Any]) -> dict[str, Any]:
    """Where the profile names a login, the token is what that has stored."""
    if "login" not in found:
        return found
    if "token" in found:
        raise ConfigurationError("Give a token or a login, not both: the platform takes one credential.")
    rest = {name: value for name, value in found.items() if name != "login"}
    return {**rest, "token": StoredLogin(login_file(file, found["login"]), ca=found.get("ca"))}


def _document(file: Path) -> dict[str, Any]:
    try:
        document = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{file} cannot be read: {type(error).__name__}.") from None
    require_private(file)
    return document
