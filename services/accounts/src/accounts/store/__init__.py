"""accounts' tables and the only SQL on them."""

from accounts.store.accounts import (
    Position,
    count_accounts,
    find_account,
    insert_account,
    list_accounts,
    lock_organization,
    update_account,
)
from accounts.store.credentials import (
    count_credentials,
    custody,
    find_credential,
    find_sealed,
    forget_sealed,
    insert_credential,
    list_credentials,
    mark_invalid,
    mark_refused,
    put_sealed,
    record_destroyed,
    record_put,
    renew_credential,
    revoke_credential,
)
from accounts.store.objects import VaultObjects, replace_envelope, sealed_tables, under_other_keys
from accounts.store.tables import METADATA, SCHEMA

__all__ = [
    "METADATA",
    "SCHEMA",
    "Position",
    "VaultObjects",
    "count_accounts",
    "count_credentials",
    "custody",
    "find_account",
    "find_credential",
    "find_sealed",
    "forget_sealed",
    "insert_account",
    "insert_credential",
    "list_accounts",
    "list_credentials",
    "lock_organization",
    "mark_invalid",
    "mark_refused",
    "put_sealed",
    "record_destroyed",
    "record_put",
    "renew_credential",
    "replace_envelope",
    "revoke_credential",
    "sealed_tables",
    "under_other_keys",
    "update_account",
]
