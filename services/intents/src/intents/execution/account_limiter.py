"""Which of the claimed commands may start: no organization and no account takes all the threads."""

import threading
from collections import Counter, OrderedDict, deque
from uuid import UUID

from intents.execution.fair_share import may_take_another
from intents.execution.model.commands import LeasedCommand

_Accounts = OrderedDict[UUID, deque[LeasedCommand]]


class AccountConcurrencyLimiter:
    """Of `threads` calls at the same time an organization has its fair share, and of these an account `account_calls`.

    What is beyond that waits: organizations take turns, and within each its accounts.
    """

    def __init__(self, threads: int, account_calls: int) -> None:
        self._threads, self._account_calls = threads, account_calls
        self._lock = threading.Lock()
        self._calls = 0
        self._of_organization: Counter[UUID] = Counter()
        self._of_account: Counter[UUID] = Counter()
        self._waiting: OrderedDict[UUID, _Accounts] = OrderedDict()

    @property
    def calls(self) -> int:
        """How many have begun and not ended."""
        return self._calls

    def enter(self, command: LeasedCommand) -> bool:
        """Whether it may start now; otherwise `leave` returns it once another command has ended."""
        with self._lock:
            if self._may_begin(command.organization_id, command.account_id):
                self._begin(command)
                return True
            accounts = self._waiting.setdefault(command.organization_id, OrderedDict())
            accounts.setdefault(command.account_id, deque()).append(command)
            return False

    def leave(self, done: LeasedCommand) -> list[LeasedCommand]:
        """What may begin now that this one has ended: there is a thread for each."""
        with self._lock:
            self._calls -= 1
            _decrease(self._of_organization, done.organization_id)
            _decrease(self._of_account, done.account_id)
            return list(iter(self._next, None))

    def blocked(self) -> dict[UUID, tuple[UUID, int]]:
        """Accounts that have as many calls as they may, with their organization and how much of theirs waits.

        Nothing more of them should be taken, and what waits keeps nobody else from being taken.
        """
        with self._lock:
            return {
                account_id: (organization_id, len(commands))
                for organization_id, accounts in self._waiting.items()
                for account_id, commands in accounts.items()
                if self._of_account[account_id] >= self._account_calls
            }

    def _may_begin(self, organization_id: UUID, account_id: UUID) -> bool:
        held, free = self._of_organization[organization_id], self._threads - self._calls
        return may_take_another(held, free) and self._of_account[account_id] < self._account_calls

    def _begin(self, command: LeasedCommand) -> None:
        self._calls += 1
        self._of_organization[command.organization_id] += 1
        self._of_account[command.account_id] += 1

    def _next(self) -> LeasedCommand | None:
        for organization_id, accounts in self._waiting.items():
            for account_id in accounts:
                if self._may_begin(organization_id, account_id):
                    return self._taken(organization_id, account_id)
        return None

    def _taken(self, organization_id: UUID, account_id: UUID) -> LeasedCommand:
        """Its account is the last of its organization from now on, and its organization the last of all."""
        accounts = self._waiting[organization_id]
        command = accounts[account_id].popleft()
        _to_the_end(accounts, account_id)
        _to_the_end(self._waiting, organization_id)
        self._begin(command)
        return command


def _decrease(counter: Counter[UUID], name: UUID) -> None:
    counter[name] -= 1
    if not counter[name]:
        del counter[name]


def _to_the_end(line: OrderedDict[UUID, deque[LeasedCommand]] | OrderedDict[UUID, _Accounts], name: UUID) -> None:
    if line[name]:
        line.move_to_end(name)
    else:
        del line[name]
