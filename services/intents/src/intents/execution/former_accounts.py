"""Orders that were sent under a credential which opens another account at the broker than today's."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from chassis import logs
from intents.execution.credentials import CredentialPending, Credentials, KeyPair
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.watches import NEVER, Watch
from tip_brokers import Broker, BrokerError, CredentialRefused, RateLimited

log = logs.get(__name__)

PAUSE_SECONDS = 5.0  # after a rate limit that does not say how long it lasts


@dataclass(frozen=True)
class FormerAccounts:
    credentials: Credentials
    broker_of: Callable[[WatchedAccount, KeyPair], Broker]
    on_refused: Callable[[UUID, KeyPair], None]
    record: Callable[[OutOfReach], None]

    def differences(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> Iterator[BrokerReport]:
        """What is new of these orders; those that no credential can query any more are reported as such."""
        for broker_account in {known.broker_account for known in known_orders}:
            there = [known for known in known_orders if known.broker_account == broker_account]
            if time.monotonic() < watch.paused_elsewhere.get(broker_account, NEVER):
                watch.queries.note_unread(there)
                continue
            try:
                yield from self._in_account(watch, broker_account, there)
            except CredentialPending:
                continue
            except BrokerError as error:
                watch.queries.note_unread(there)
                if isinstance(error, RateLimited):
                    watch.paused_elsewhere[broker_account] = time.monotonic() + (error.retry_after or PAUSE_SECONDS)
                account_id, name = str(watch.account.account_id), type(error).__name__
                log.info("former_account_not_read", account_id=account_id, orders=len(there), error=name)

    def _in_account(
        self, watch: Watch, broker_account: str | None, known_orders: Sequence[KnownOpenOrder]
    ) -> Iterable[BrokerReport]:
        """With the first key pair that opens it and that the broker does not refuse."""
        account_id = watch.account.account_id
        for pair, broker in self._opening(watch, broker_account, known_orders):
            account = AccountReconciliation(account_id, broker, known_orders, watch.queries, is_former=True)
            try:
                found = account.differences()
            except CredentialRefused:
                self._note_refused(watch, pair)
                continue
            watch.refused_elsewhere.discard(pair.reference)
            return found
        self._report_out_of_reach(account_id, known_orders)
        return ()

    def _opening(
        self, watch: Watch, broker_account: str | None, known_orders: Sequence[KnownOpenOrder]
    ) -> Iterator[tuple[KeyPair, Broker]]:
        """Raises CredentialPending in the end if one may open it that is on its way into the vault."""
        pending: CredentialPending | None = None
        account = watch.account
        for credential in dict.fromkeys(known.credential for known in known_orders if broker_account):
            if credential is None:
                continue
            try:
                for pair in self.credentials.bound(account.account_id, account.broker, credential):
                    broker = self.broker_of(account, pair)
                    if self._login(watch, pair, broker) == broker_account:
                        yield pair, broker
            except CredentialPending as error:
                pending = error
        if pending:
            raise pending

    def _login(self, watch: Watch, pair: KeyPair, broker: Broker) -> str | None:
        try:
            return self.credentials.broker_account(watch.account.account_id, pair, broker)
        except CredentialRefused:
            self._note_refused(watch, pair)
            return None

    def _note_refused(self, watch: Watch, pair: KeyPair) -> None:
        if pair.reference not in watch.refused_elsewhere:
            self.on_refused(watch.account.account_id, pair)
            watch.refused_elsewhere.add(pair.reference)

    def _report_out_of_reach(self, account_id: UUID, known_orders: Sequence[KnownOpenOrder]) -> None:
        for known in known_orders:
            if not known.needs_operator:
                self.record(OutOfReach(account_id, known.client_order_id))
        log.info("orders_out_of_reach", account_id=str(account_id), orders=len(known_orders))
