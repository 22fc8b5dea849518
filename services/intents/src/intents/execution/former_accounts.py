"""Orders that were sent under a credential which opens another account at the broker than today's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from chassis import logs
from intents.execution.credentials import CredentialPending, Credentials, KeyPair
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, WatchedAccount
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.watches import Watch
from tip_brokers import Broker

log = logs.get(__name__)


@dataclass(frozen=True)
class FormerAccounts:
    credentials: Credentials
    broker_of: Callable[[WatchedAccount, KeyPair], Broker]
    record: Callable[[OutOfReach], None]

    def differences(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> list[BrokerReport]:
        """What is new of these orders; those that no credential can query any more are reported as such."""
        found: list[BrokerReport] = []
        for broker_account in {known.broker_account for known in known_orders}:
            there = [known for known in known_orders if known.broker_account == broker_account]
            try:
                broker = self._broker(watch.account, there[0])
            except CredentialPending:
                continue
            if broker is None:
                self._report_out_of_reach(watch, there)
                continue
            account = AccountReconciliation(watch.account.account_id, broker, there, watch.queries, is_former=True)
            found += account.differences()
        return found

    def _report_out_of_reach(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> None:
        for known in known_orders:
            if not known.needs_operator:
                self.record(OutOfReach(watch.account.account_id, known.client_order_id))
        log.info("orders_out_of_reach", account_id=str(watch.account.account_id), orders=len(known_orders))

    def _broker(self, account: WatchedAccount, known: KnownOpenOrder) -> Broker | None:
        """The account at the broker where the order is, if a credential opens it still."""
        if known.credential is None or known.broker_account is None:
            return None
        for pair in self.credentials.bound(account.account_id, account.broker, known.credential):
            broker = self.broker_of(account, pair)
            if self.credentials.broker_account(account.account_id, pair, broker) == known.broker_account:
                return broker
        return None
