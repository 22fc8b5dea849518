"""Broker secrets: where they are kept and how they are read. No service is imported here, so any may import this.

    vault.put(path, Secret({"key_id": "...", "secret_key": "..."}))
    vault.get(path).reveal()

A `SecretPath` says whose secret it is and which version; what is put at one path is never readable at another.
"""

from credential_vault.envelope import BrokenSeal, Envelope, Keyring, UnknownKey
from credential_vault.hashicorp import Hashicorp
from credential_vault.local import Local, Objects, open_object
from credential_vault.protocol import Destroyed, Missing, Refused, Unavailable, Vault
from credential_vault.secret import Secret, SecretPath

__all__ = [
    "BrokenSeal",
    "Destroyed",
    "Envelope",
    "Hashicorp",
    "Keyring",
    "Local",
    "Missing",
    "Objects",
    "Refused",
    "Secret",
    "SecretPath",
    "Unavailable",
    "UnknownKey",
    "Vault",
    "open_object",
]
