"""Fairness: one account, however much it sends and however slow its broker is, does not take all the threads."""

import threading
from collections import defaultdict, deque
from uuid import UUID

from intents.execution.work import Work


class Turns:
    """No account has more than `width` calls at the same time. What is beyond that waits behind its own kind."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._lock = threading.Lock()
        self._calls: defaultdict[UUID, int] = defaultdict(int)
        self._behind: dict[UUID, deque[Work]] = {}
        self.waiting = 0

    def enter(self, work: Work) -> bool:
        """Whether it may be done now; else `leave` gives it to whoever is done with one of the same account."""
        with self._lock:
            if self._calls[work.account_id] < self._width:
                self._calls[work.account_id] += 1
                return True
            self._behind.setdefault(work.account_id, deque()).append(work)
            self.waiting += 1
            return False

    def leave(self, done: Work) -> Work | None:
        """The next of the same account, if one waits."""
        account_id = done.account_id
        with self._lock:
            if behind := self._behind.get(account_id):
                self.waiting -= 1
                following = behind.popleft()
                if not behind:
                    del self._behind[account_id]
                return following
            self._calls[account_id] -= 1
            if not self._calls[account_id]:
                del self._calls[account_id]
            return None

    def full(self) -> list[UUID]:
        """The accounts of which nothing more should be taken."""
        with self._lock:
            return list(self._behind)
