"""Prices that commands are refused for want of: requested at the broker, and waited for briefly.

Whoever waits holds no lock, no transaction and no connection.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

from sqlalchemy import Connection

from chassis import db
from chassis.polling import poll
from control_rules import MissingPrices
from intents import model
from intents.model import Submission
from intents.store import quotes
from intents.usecases.deadline import Deadline
from intents.usecases.deps import Deps


@dataclass
class PriceWait:
    """The wait of one request for prices: one for all its commands, and within its deadline."""

    deps: Deps
    deadline: Deadline
    symbols: frozenset[str]
    """Of all its commands: what they lack is requested together."""
    _ends: float | None = field(default=None, init=False)

    @classmethod
    def of(cls, deps: Deps, batch: Iterable[Submission | Exception], deadline: Deadline) -> Self:
        commands = (submission.command for submission in batch if isinstance(submission, Submission))
        return cls(deps, deadline, frozenset(command.symbol for command in commands if command.symbol))

    def came_for(self, submission: Submission | Exception, refusal: model.ControlRejected) -> bool:
        """Whether prices came for want of which alone the command was refused. The platform itself does not wait."""
        missing = refusal.missing_prices
        if missing is None or isinstance(submission, Exception) or submission.caller is None:
            return False
        requested = self._request(submission, submission.caller.organization_id, missing)
        return len(self._wait(submission.account_id, requested)) < len(requested)

    def _request(self, submission: Submission, organization_id: UUID | None, missing: MissingPrices) -> list[str]:
        if organization_id is None:
            return []
        account_id, symbols = submission.account_id, [*self.symbols | {missing.symbol}]
        with self.deps.engine.begin() as tx:
            wanted = self._unpriced(tx, account_id, symbols, with_exposure=missing.of_others)
            return quotes.request_quotes(tx, organization_id, account_id, wanted) if wanted else []

    def _wait(self, account_id: UUID, requested: Sequence[str]) -> list[str]:
        """What is still missing afterwards."""
        self._ends = self._ends or min(time.monotonic() + self.deps.freshness.wait_seconds, self.deadline.at)

        def missing() -> list[str]:
            with db.reading(self.deps.engine) as tx:
                return self._unpriced(tx, account_id, requested)

        return poll(missing, lambda symbols: not symbols, self._ends - time.monotonic()) if requested else []

    def _unpriced(
        self, tx: Connection, account_id: UUID, symbols: Sequence[str], *, with_exposure: bool = False
    ) -> list[str]:
        read_seconds = self.deps.freshness.seconds
        return quotes.unpriced_symbols(
            tx, account_id, symbols, self.deps.price_max_age, read_seconds, with_exposure=with_exposure
        )
