"""Ids of demo data are the same everywhere, so that configuration can name them before they exist."""

from uuid import NAMESPACE_URL, UUID, uuid5


def demo_id(name: str) -> UUID:
    return uuid5(NAMESPACE_URL, f"urn:tip:demo:{name}")
