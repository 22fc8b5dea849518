"""Where the Server-Sent Events are: the API's own document says, if they are at another address than the API."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from tip_client.errors import ConfigurationError, UnexpectedAnswer
from tip_client.models.platform import PlatformInfo
from tip_client.request import Request
from tip_client.settings import Settings

_PATH = "/v1/accounts/{account_id}/events"


def _servers(document: Any) -> list[Any]:
    node: Any = document
    for name in ("paths", _PATH, "get", "servers"):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, list) else []


API_DOCUMENT: Request[list[Any]] = Request("GET", "/openapi.json", _servers)


def events_url_in(servers: list[Any], settings: Settings) -> str:
    """The address that the document names, else the API's. A key is sent there: never from TLS to no TLS."""
    named = servers[0].get("url") if servers and isinstance(servers[0], Mapping) else None
    if not isinstance(named, str) or not urlsplit(named).hostname:
        return settings.url
    if settings.is_secure and urlsplit(named).scheme != "https":
        raise ConfigurationError("The platform names an address for events without TLS: set TIP_EVENTS_URL.")
    return named


def platform_info(document: Any, date: str | None, seconds: float, now: datetime) -> PlatformInfo:
    """Out of the API's document and the Date of its answer, which has come just now and took so long."""
    about = document.get("info") if isinstance(document, Mapping) else None
    version = about.get("version") if isinstance(about, Mapping) else None
    if not isinstance(version, str):
        raise UnexpectedAnswer("The answer is not the document of this API.")
    return PlatformInfo(version, seconds, _clock_offset(date, now - timedelta(seconds=seconds / 2)))


def _clock_offset(date: str | None, now: datetime) -> float | None:
    """The header counts whole seconds: whatever lies within that second is no difference."""
    try:
        ahead = (parsedate_to_datetime(date or "") - now).total_seconds()
    except (ValueError, TypeError):
        return None
    return max(ahead, 0.0) if ahead > -1 else ahead + 1
