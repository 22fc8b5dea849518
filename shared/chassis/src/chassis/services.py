"""The services of the platform, by the name that their package, their schema and their database roles have."""

WEB_SERVICES = ("identity", "accounts", "controls", "intents")
"""Those that answer HTTP and have an outbox."""
SERVICES = (*WEB_SERVICES, "stream_gateway")
ROLES = (*SERVICES, *(f"{name}_web" for name in WEB_SERVICES), "intents_signer")
"""Whoever connects to the database, each with a password of its own: each service's workers and its web process, and
the signer of logs."""
