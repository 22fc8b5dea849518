"""Whom to believe about certificates."""

import ssl

import httpx

from tip_client.errors import ConfigurationError


def tls_context(ca: str | None) -> ssl.SSLContext:
    """The system's authorities, and the one in this file."""
    context = httpx.create_ssl_context()
    try:
        if ca is not None:
            context.load_verify_locations(cafile=ca)
    except OSError:
        raise ConfigurationError(f"{ca} is no certificate authority.") from None
    return context
