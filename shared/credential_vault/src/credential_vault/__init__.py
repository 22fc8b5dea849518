"""Broker secrets: where they are kept and how they are read. No service is imported here, so any may import this.

    vault.put(place, Secret({"key_id": "...", "secret_key": "..."}))
    vault.get(place).reveal()

A `Place` says whose secret it is and which version; what was put in one place is never readable at another.
"""

from credential_vault.envelope import BrokenSeal, Envelope, Keyring, UnknownKey
from credential_vault.hashicorp import Hashicorp
from credential_vault.local import Local, Objects, open_object
from credential_vault.place import Place, Secret
from credential_vault.protocol import Destroyed, Missing, Refused, Unavailable, Vault

__all__ = [
    "BrokenSeal",
    "Destroyed",
    "Envelope",
    "Hashicorp",
    "Keyring",
    "Local",
    "Missing",
    "Objects",
    "Place",
    "Refused",
    "Secret",
    "Unavailable",
    "UnknownKey",
    "Vault",
    "open_object",
]
