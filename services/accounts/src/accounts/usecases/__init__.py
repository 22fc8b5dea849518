"""What accounts does: one function per use case, one transaction each."""

from accounts.usecases.accounts import (
    change_account,
    create_account,
    disable_account,
    enable_account,
    list_accounts,
    read_account,
)
from accounts.usecases.credentials import (
    add_credential,
    delete_credential,
    list_credentials,
    read_credential,
    request_test,
    rotate_secret,
)
from accounts.usecases.custody import apply_intents_event, give_up, rewrap, settle_credential
from accounts.usecases.deletion import delete_account, finish_deletions
from accounts.usecases.deps import Deps
from accounts.usecases.outbox import list_failed_rows, outbox_health, redrive_row

__all__ = [
    "Deps",
    "add_credential",
    "apply_intents_event",
    "change_account",
    "create_account",
    "delete_account",
    "delete_credential",
    "disable_account",
    "enable_account",
    "finish_deletions",
    "give_up",
    "list_accounts",
    "list_credentials",
    "list_failed_rows",
    "outbox_health",
    "read_account",
    "read_credential",
    "redrive_row",
    "request_test",
    "rewrap",
    "rotate_secret",
    "settle_credential",
]
