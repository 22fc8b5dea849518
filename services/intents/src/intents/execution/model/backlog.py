"""Whose commands wait too long to be sent. Only an organization's own commands say so of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import NamedTuple
from uuid import UUID

LEAST_ACCOUNTS = 2
"""What a single account has waiting says nothing about the others of its organization."""


class WaitingAccount(NamedTuple):
    """An account with a command that is due, that nobody has taken and that was never begun at the broker."""

    organization_id: UUID
    account_id: UUID
    broker: str
    environment: str
    age_seconds: float
    """For how long the oldest such command has been due."""
    in_flight: bool
    """Whether other commands of the account are being sent: then it waits for itself."""


class Overload(NamedTuple):
    """Where callers' CREATE and REPLACE are refused: an account, or an organization's accounts at a broker."""

    organization_id: UUID
    scope: str


def overloads(waiting: Sequence[WaitingAccount], max_age_seconds: float) -> list[Overload]:
    """What is behind by more than that: accounts by themselves, and organizations by most of their accounts."""
    accounts = (
        Overload(account.organization_id, str(account.account_id))
        for account in waiting
        if account.age_seconds > max_age_seconds
    )
    return sorted([*accounts, *_of_brokers(waiting, max_age_seconds)])


def _of_brokers(waiting: Iterable[WaitingAccount], max_age_seconds: float) -> Iterable[Overload]:
    ages: defaultdict[Overload, list[float]] = defaultdict(list)
    for account in waiting:
        if not account.in_flight:
            scope = f"{account.broker} {account.environment}"  # the same in `intents.store.backlog`
            ages[Overload(account.organization_id, scope)].append(account.age_seconds)
    return (
        overload
        for overload, found in ages.items()
        if len(found) >= LEAST_ACCOUNTS and median_low(found) > max_age_seconds
    )
