"""Orders that were sent under a credential which opens another account at the broker than today's."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from chassis import logs
from intents.execution.credentials import CredentialPending, Credentials, KeyPair, VaultDown
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.watches import NEVER, Watch
from tip_brokers import Broker, BrokerError, CredentialRefused, RateLimited

log = logs.get(__name__)

PAUSE_SECONDS = 30.0  # after a failure, so that today's account does not wait for a former one again and again


@dataclass(frozen=True)
class FormerAccounts:
    credentials: Credentials
    broker_of: Callable[[WatchedAccount, KeyPair], Broker]
    on_refused: Callable[[UUID, KeyPair], None]
    record: Callable[[OutOfReach], None]
    notes_unread: bool
    """Whether the orders count as unread while nothing can be queried. They do not while today's account is not opened:
    then they may be its own."""

    def differences(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> Iterator[BrokerReport]:
        """What is new of these orders; those that no credential can query any more are reported as such."""
        for broker_account in {known.broker_account for known in known_orders}:
            there = [known for known in known_orders if known.broker_account == broker_account]
            yield from self._in_account(watch, broker_account, there)

    def _in_account(
        self, watch: Watch, broker_account: str | None, known_orders: Sequence[KnownOpenOrder]
    ) -> list[BrokerReport]:
        """With the first key pair that opens it and with which it can be read."""
        account_id, may_follow = watch.account.account_id, False
        for opened in self._opening(watch, broker_account, known_orders):
            if opened is None:
                may_follow = True
                continue
            pair, broker = opened
            account = AccountReconciliation(account_id, broker, known_orders, watch.queries, is_former=True)
            found = account.attempt(account.differences)
            for failure in account.failures:
                may_follow |= self._may_answer_later(watch, pair, failure)
            if found is not None:
                watch.refused_elsewhere.discard(pair.reference)
                return found
        if may_follow and self.notes_unread:
            watch.queries.note_unread(known_orders)
        elif not may_follow:
            self._report_out_of_reach(account_id, known_orders)
        return []

    def _opening(
        self, watch: Watch, broker_account: str | None, known_orders: Sequence[KnownOpenOrder]
    ) -> Iterator[tuple[KeyPair, Broker] | None]:
        """Key pairs with what they open; None for one that may open it, but not now."""
        if broker_account is None:
            return
        account, tried = watch.account, set[str]()
        for pair in self._pairs(account, broker_account, known_orders):
            if pair is None or time.monotonic() < watch.paused_elsewhere.get(pair.reference, NEVER):
                yield None
            elif pair.reference not in tried:
                tried.add(pair.reference)
                try:
                    broker = self.broker_of(account, pair)
                    if self.credentials.broker_account(account.account_id, pair, broker) == broker_account:
                        yield pair, broker
                except (BrokerError, KeyError) as error:  # KeyError: its secret lacks a part that the broker needs
                    if self._may_answer_later(watch, pair, error):
                        yield None

    def _pairs(
        self, account: WatchedAccount, broker_account: str, known_orders: Sequence[KnownOpenOrder]
    ) -> Iterator[KeyPair | None]:
        """Of the orders' own credentials first; None for one that is on its way into the vault, or out of reach now."""
        own = [known.credential for known in known_orders if known.credential]
        for reference in dict.fromkeys([*own, *self.credentials.opening(account.account_id, broker_account)]):
            try:
                yield from self.credentials.bound(account.account_id, account.broker, reference)
            except (CredentialPending, VaultDown):
                yield None

    def _may_answer_later(self, watch: Watch, pair: KeyPair, error: Exception) -> bool:
        if isinstance(error, CredentialRefused):
            if pair.reference not in watch.refused_elsewhere:
                self.on_refused(watch.account.account_id, pair)
                watch.refused_elsewhere.add(pair.reference)
            return False
        pause = error.retry_after if isinstance(error, RateLimited) else None
        watch.paused_elsewhere[pair.reference] = time.monotonic() + (pause or PAUSE_SECONDS)
        log.info("former_account_not_read", account_id=str(watch.account.account_id), error=type(error).__name__)
        return True

    def _report_out_of_reach(self, account_id: UUID, known_orders: Sequence[KnownOpenOrder]) -> None:
        for known in known_orders:
            if not known.needs_operator:
                self.record(OutOfReach(account_id, known.client_order_id))
        log.info("orders_out_of_reach", account_id=str(account_id), orders=len(known_orders))
