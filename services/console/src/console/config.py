"""What the console reads from its environment. It has no way into the database."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from chassis.config import BadConfiguration, EnvironmentConfig, setting


@dataclass(frozen=True)
class Config(EnvironmentConfig):
    redis_url: str = setting("REDIS_URL", "Redis or Valkey, where sessions are kept, sealed", secret=True)
    cursor_key: str = setting("CURSOR_KEY", "half of the key that seals sessions; the cookie is the rest", secret=True)
    public_url: str = setting("PUBLIC_URL", "where browsers reach the platform", default="http://127.0.0.1:8080")
    api_url: str = setting("API_URL", "where the console itself reaches the API; PUBLIC_URL when empty", default="")
    api_ca: str = setting("API_CA", "PEM of the authority that signed the certificate of API_URL", default="")
    oidc_issuer: str = setting(
        "OIDC_ISSUER", "OpenID Connect provider of the users; empty: they sign in at identity", default=""
    )
    client_id: str = setting("CONSOLE_CLIENT_ID", "the console's client at whoever signs people in", default="console")
    client_secret: str = setting(
        "CONSOLE_CLIENT_SECRET", "its secret, where the provider gave it one", default="", secret=True
    )
    scopes: str = setting(
        "CONSOLE_SCOPES", "scopes requested of an OpenID Connect provider", default="openid offline_access"
    )
    trusted_proxies: int = setting("TRUSTED_PROXIES", "proxies in front whose X-Forwarded-For is believed", default=0)
    log_format: str = setting("LOG_FORMAT", "json, text, or auto (text on a terminal)", default="auto")
    log_level: str = setting("LOG_LEVEL", "debug, info, warning or error", default="info")

    def __post_init__(self) -> None:
        addresses = {"PUBLIC_URL": self.public_url, "API_URL": self.api, "OIDC_ISSUER": self.oidc_issuer or self.api}
        wrong = [variable for variable, address in addresses.items() if not _is_address(address)]
        if wrong:
            raise BadConfiguration(
                "\n".join(f"{variable}: must be http:// or https:// and a host" for variable in wrong)
            )

    @property
    def api(self) -> str:
        return (self.api_url or self.public_url).rstrip("/")

    @property
    def origin(self) -> str:
        """Of the console's own pages, as browsers write it: without the port that goes without saying."""
        usual = ":443" if self.public_url.startswith("https:") else ":80"
        return self.public_url.rstrip("/").removesuffix(usual)


def _is_address(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and bool(parts.hostname)
