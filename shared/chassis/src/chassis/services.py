"""The services of the platform, by the name that their package, their schema and their database roles have."""

WEB_SERVICES = ("identity", "accounts", "controls", "intents")
"""Those that answer HTTP and have an outbox."""
SERVICES = (*WEB_SERVICES, "stream_gateway")
ROLES = (*SERVICES, *(f"{name}_web" for name in WEB_SERVICES), "intents_signer")
"""Whoever connects to the database, each with a password of its own: each service's workers and its web process, and
the signer of logs."""

_WEB = "_web"


def role(name: str) -> str:
    return f"tip_{name}"


def web_name(service: str) -> str:
    """As whom the service's web process connects."""
    return f"{service}{_WEB}" if f"{service}{_WEB}" in ROLES else service


def web_names() -> list[str]:
    """All of them that see rows by organization."""
    return [name for name in ROLES if name.endswith(_WEB)]
