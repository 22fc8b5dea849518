"""Where the Server-Sent Events are: the API's own document says, if they are at another address than the API."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tip_client.errors import ConfigurationError
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
