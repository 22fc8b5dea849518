"""Which accounts a reconciler reads next: those that are due, by turns of organizations, at each broker's pace."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy import Connection, Engine

from chassis import db
from intents.execution import store
from intents.execution.credentials import CredentialChanged
from intents.execution.model.known_orders import Holdings
from intents.execution.model.read_schedule import Pace, ReadSchedule

MOST_AT_ONCE = 200  # of one claim
UNFINISHED_SECONDS = 30.0  # after which a read that was begun and not finished is due again
ENROLL_SECONDS = 30.0  # how often accounts are found of which no event has come


@dataclass
class AccountReads:
    """The schedule of one reconciler, which holds its accounts under `token`."""

    engine: Engine
    token: UUID
    schedule: ReadSchedule = field(default_factory=ReadSchedule)

    def enroll(self) -> None:
        with db.in_one_message(self.engine) as tx:
            store.enroll_accounts(tx)

    def claim(self, lease_seconds: float, most: int = MOST_AT_ONCE) -> list[UUID]:
        """Lease accounts that are due, as many as the pace of their brokers grants."""
        with self.engine.begin() as tx:
            waiting = store.due_reads(tx, self.token, most)
            if not waiting:
                return []
            paces = store.lock_paces(tx, {read.broker for read in waiting})
            granted = self._granted(tx, paces, most)
            # Whoever requests a read of one of them waits for this message and not for the end of the transaction,
            # which only other reconcilers wait for.
            with db.in_one_message(self.engine) as own:
                return store.begin_reads(own, self.token, granted, lease_seconds, UNFINISHED_SECONDS)

    def _granted(self, tx: Connection, paces: Mapping[str, Pace], most: int) -> list[UUID]:
        due = store.due_reads(tx, self.token, most)  # again: another reconciler may have been faster
        granted: list[UUID] = []
        for broker, pace in paces.items():
            waiting = [read.account_id for read in due if read.broker == broker]
            count, paid = pace.grant(store.now(tx), self.schedule.reads_per_second, len(waiting))
            store.save_pace(tx, broker, paid)
            granted += waiting[:count]
        return granted

    def save(self, account_id: UUID, reference: str, broker_account: str, holdings: Holdings) -> int | None:
        """What was read with the credential; the new head of the log if that appended to it.

        Not if the account has another credential by now, which opens another account at the broker.
        """
        saved = self._save(account_id, broker_account, holdings)
        if not saved.is_held:
            with self.engine.begin() as tx:
                store.hold_account(tx, account_id, reference, broker_account)
            saved = self._save(account_id, broker_account, holdings)
        if not saved.is_held:
            raise CredentialChanged
        return saved.head

    def _save(self, account_id: UUID, broker_account: str, holdings: Holdings) -> store.SavedHoldings:
        seconds = self.seconds_until_next(holding=bool(holdings.positions))
        with db.in_one_message(self.engine) as tx:
            return store.save_holdings(tx, account_id, holdings, seconds, broker_account)

    def seconds_until_next(self, *, holding: bool) -> float:
        return self.schedule.seconds_until_next(holding=holding, chance=_chance())

    def postpone(self, account_id: UUID, at_least: float = 0.0) -> None:
        """After a read that failed; `at_least` is the broker's wish."""
        with db.in_one_message(self.engine) as tx:
            failures = store.read_failures(tx, account_id) + 1
            retry = self.schedule.seconds_until_retry(failures, _chance())
            store.postpone_read(tx, account_id, max(at_least, retry))

    def release(self, account_id: UUID) -> None:
        """Let any reconciler read the account next time."""
        with db.in_one_message(self.engine) as tx:
            store.release_account(tx, self.token, account_id)


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads reads, guards nothing # nosec B311
