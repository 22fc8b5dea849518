"""How far execution is behind: measured, shown, and kept for the submits that it refuses."""

from collections.abc import Sequence

from chassis import db, logs
from intents.execution.metrics import BACKLOG_SECONDS, BROKER_BACKLOG_SECONDS, OVERLOADS
from intents.execution.model.backlog import Overload, WaitingAccount, overloads
from intents.execution.store import waiting_accounts
from intents.store import save_overloads
from intents.usecases import Deps

log = logs.get(__name__)

KEPT_SECONDS = 5.0
"""So long a measurement refuses submits if no other follows: without a scheduler nobody is refused."""


class BacklogMonitor:
    """`max_age_seconds` 0: it only measures."""

    def __init__(self, deps: Deps, max_age_seconds: float) -> None:
        self._deps, self._max_age_seconds = deps, max_age_seconds
        self._shown: set[tuple[str, str]] = set()
        self._refuses: bool | None = None  # perhaps the process before this one has left something
        self.is_clear = False
        """Whether nothing waited at the last measurement, and nobody is refused."""

    def measure(self) -> None:
        """One read; and one write while somebody is refused, and when that ends."""
        with db.reading(self._deps.engine) as tx:
            waiting = waiting_accounts(tx)
        found = overloads(waiting, self._max_age_seconds) if self._max_age_seconds else []
        self._show(waiting, found)
        if found or self._refuses is not False:
            self._keep(found)
        self.is_clear = not waiting and not self._refuses

    def _keep(self, found: Sequence[Overload]) -> None:
        refused_before, self._refuses = self._refuses, True  # also if the write fails
        with self._deps.engine.begin() as tx:
            save_overloads(tx, found, KEPT_SECONDS)
        self._refuses = bool(found)
        if found and not refused_before:
            log.warning("overload_began", scopes=len(found))
        if refused_before and not found:
            log.info("overload_ended")

    def _show(self, waiting: Sequence[WaitingAccount], found: Sequence[Overload]) -> None:
        ages = dict.fromkeys(self._shown, 0.0)
        for account in waiting:
            broker = (account.broker, account.environment)
            ages[broker] = max(account.age_seconds, ages.get(broker, 0.0))
        self._shown |= ages.keys()
        for broker, age in ages.items():
            BROKER_BACKLOG_SECONDS.labels(*broker).set(age)
        BACKLOG_SECONDS.set(max(ages.values(), default=0.0))
        OVERLOADS.set(len(found))
