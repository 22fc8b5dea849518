"""API keys: what they are, what they are bounded to, and what a change of one gives away."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Self
from uuid import UUID


@dataclass(frozen=True)
class Bounds:
    """What a key is restricted to beyond its permissions; None restricts nothing."""

    accounts: tuple[UUID, ...] | None = None
    symbols: tuple[str, ...] | None = None
    max_notional_per_day: Decimal | None = None

    @classmethod
    def from_json(cls, bounds: Mapping[str, Any] | None) -> Self | None:
        if bounds is None:
            return None
        accounts, symbols, most = (bounds.get(name) for name in ("accounts", "symbols", "max_notional_per_day"))
        return cls(
            None if accounts is None else tuple(map(UUID, accounts)),
            None if symbols is None else tuple(symbols),
            None if most is None else Decimal(most),
        )

    @property
    def as_json(self) -> dict[str, Any]:
        """What is not restricted is absent."""
        most = self.max_notional_per_day
        bounds = {
            "accounts": None if self.accounts is None else [str(account_id) for account_id in self.accounts],
            "symbols": None if self.symbols is None else list(self.symbols),
            "max_notional_per_day": None if most is None else format(most, "f"),
        }
        return {name: value for name, value in bounds.items() if value is not None}


@dataclass(frozen=True)
class ApiKey:
    """A key as it may be shown: never the key itself."""

    id: UUID
    organization_id: UUID
    name: str
    environment: str
    permissions: tuple[str, ...]
    prefix: str
    disabled: bool
    expires_at: datetime | None
    last_used_at: datetime | None
    created_at: datetime
    bounds: Bounds | None = None


@dataclass(frozen=True)
class NewApiKey:
    """What a key is to be."""

    name: str
    environment: str
    permissions: tuple[str, ...]
    expires_at: datetime | None = None
    bounds: Bounds | None = None


def permissions_given(key: ApiKey, changes: Mapping[str, Any]) -> set[str]:
    """What a change gives to whoever has the key: new permissions, or all if the key then works again, longer or wider.

    Wider is whatever was outside the key's bounds before.
    """
    after, ends = set(changes.get("permissions", key.permissions)), changes.get("expires_at", key.expires_at)
    longer = key.expires_at is not None and (ends is None or ends > key.expires_at)
    again = key.disabled and not changes.get("disabled", True)
    wider = is_wider(key.bounds or Bounds(), changes.get("bounds", key.bounds) or Bounds())
    return after if longer or again or wider else after - set(key.permissions)


def is_wider(before: Bounds, after: Bounds) -> bool:
    """Whether anything is within the bounds after a change that was not within them before."""
    lists = ((before.accounts, after.accounts), (before.symbols, after.symbols))
    most, most_after = before.max_notional_per_day, after.max_notional_per_day
    dearer = most is not None and (most_after is None or most_after > most)
    return dearer or any(_has_more(held, given) for held, given in lists)


def _has_more(before: tuple[Any, ...] | None, after: tuple[Any, ...] | None) -> bool:
    return before is not None and (after is None or not set(after) <= set(before))
