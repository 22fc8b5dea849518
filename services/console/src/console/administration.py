"""Accounts, keys and audit entries as people fill them in and read them, and as the API has them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ENVIRONMENTS = ("paper", "live")
ROLES = ("admin", "member", "read_only")
PERMISSIONS: Mapping[str, str] = {
    "intent:read": "read orders and events",
    "intent:edit": "submit, replace and cancel orders",
    "control:read": "read controls",
    "control:edit": "change controls",
    "account:read": "read accounts",
    "account:edit": "change accounts",
    "credential:read": "see which credentials there are",
    "credential:edit": "add and rotate credentials",
}
ENTITLEMENTS: Mapping[str, str] = {
    "controls_premium": "controls can be set and read",
    "trading_live": "live accounts can trade",
}
CREDENTIAL_MEANINGS = {"pending": "going", "active": "good", "invalid": "bad", "revoked": "ended"}
"""The one colour of each status."""
TEST_MEANINGS = {"pending": "going", "accepted": "good", "refused": "bad", "failed": "ended"}
"""The same of a test that was requested."""
AUDIT_TYPES = (
    "api_key.created", "api_key.deleted", "api_key.updated", "entitlement.deleted", "entitlement.updated",
    "invitation.accepted", "invitation.created", "invitation.deleted", "login.reset", "login.signed_in",
    "membership.deleted", "membership.updated", "organization.created", "organization.updated", "user.deleted",
)  # fmt: skip


@dataclass(frozen=True)
class NewKey:
    """A key as somebody filled it in; whether it may be so is for the API to say."""

    name: str = ""
    environment: str = "paper"
    permissions: Sequence[str] = ()
    accounts: Sequence[str] = ()
    symbols: str = ""
    max_notional_per_day: str = ""
    expires_on: str = ""

    @property
    def bounds(self) -> dict[str, Any] | None:
        given = {
            "accounts": list(self.accounts),
            "symbols": separated(self.symbols),
            "max_notional_per_day": self.max_notional_per_day,
        }
        return {name: value for name, value in given.items() if value} or None

    @property
    def body(self) -> dict[str, Any]:
        """It ends with the day that was chosen, in UTC."""
        ends = f"{self.expires_on}T23:59:59Z" if self.expires_on else None
        named = {"name": self.name, "environment": self.environment, "permissions": list(self.permissions)}
        return {**named, "expires_at": ends, "bounds": self.bounds}


@dataclass(frozen=True)
class Change:
    """A field of an audit entry, before and after; empty where there was or is nothing."""

    field: str
    before: str
    after: str


def separated(text: str) -> list[str]:
    """`AAPL, MSFT` as a list."""
    return [part.strip() for part in text.split(",") if part.strip()]


def changes(entry: Mapping[str, Any]) -> list[Change]:
    """What an audit entry says that changed; fields that were and are empty are left out."""
    before, after = entry["from"] or {}, entry["to"] or {}
    names = [*after, *(name for name in before if name not in after)]
    found = [Change(name, written(before.get(name)), written(after.get(name))) for name in names]
    return [change for change in found if change.before or change.after]


def written(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def has_lines(part: Mapping[str, Any]) -> bool:
    """Whether a part of a credential may have several lines, as the key in a PEM file has."""
    try:
        return bool(re.fullmatch(part["pattern"], "a\nb"))
    except re.error:
        return False


def given_secret(parts: Iterable[Mapping[str, Any]], values: Mapping[str, str]) -> dict[str, str]:
    """The parts of a broker's credential that were filled in."""
    return {part["name"]: values[part["name"]] for part in parts if values.get(part["name"])}
