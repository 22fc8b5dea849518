"""Orders that were sent under a credential which opens another account at the broker than today's."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from chassis import logs
from intents.execution.credentials import CredentialPending, Credentials, KeyPair
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.watches import Watch
from tip_brokers import Broker, BrokerError, CredentialRefused, RateLimited

log = logs.get(__name__)


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
            try:
                yield from self._in_account(watch, there)
            except CredentialPending:
                continue
            except RateLimited:
                raise  # then the account is read again when the broker wishes
            except BrokerError as error:
                watch.queries.note_reading(there, there)
                account_id, name = str(watch.account.account_id), type(error).__name__
                log.info("former_account_not_read", account_id=account_id, orders=len(there), error=name)

    def _in_account(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> Iterable[BrokerReport]:
        account_id = watch.account.account_id
        opened = self._opened(watch.account, known_orders[0])
        if opened is None:
            return self._out_of_reach(account_id, known_orders)
        pair, broker = opened
        account = AccountReconciliation(account_id, broker, known_orders, watch.queries, is_former=True)
        try:
            return account.differences()
        except CredentialRefused:
            self.on_refused(account_id, pair)
            return self._out_of_reach(account_id, known_orders)

    def _out_of_reach(self, account_id: UUID, known_orders: Sequence[KnownOpenOrder]) -> Iterable[BrokerReport]:
        for known in known_orders:
            if not known.needs_operator:
                self.record(OutOfReach(account_id, known.client_order_id))
        log.info("orders_out_of_reach", account_id=str(account_id), orders=len(known_orders))
        return ()

    def _opened(self, account: WatchedAccount, known: KnownOpenOrder) -> tuple[KeyPair, Broker] | None:
        """The account at the broker where the order is, if a credential opens it still."""
        if known.credential is None or known.broker_account is None:
            return None
        for pair in self.credentials.bound(account.account_id, account.broker, known.credential):
            broker = self.broker_of(account, pair)
            if self.credentials.broker_account(account.account_id, pair, broker) == known.broker_account:
                return pair, broker
        return None
