"""A credential is tested by logging in with it: it becomes active when its broker accepts it."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from chassis import logs
from intents.execution.credentials import Credentials, KeyPair
from intents.execution.model.known_orders import WatchedAccount
from tip_brokers import Broker, CredentialRefused

log = logs.get(__name__)

Report = Callable[[UUID, KeyPair], None]


@dataclass(frozen=True)
class CredentialTests:
    credentials: Credentials
    broker_of: Callable[[WatchedAccount, KeyPair], Broker]
    on_accepted: Report
    on_refused: Report

    def run(self, account: WatchedAccount) -> None:
        """Test what is pending and in the vault. A broker that cannot be reached leaves it pending, and raises."""
        for pair in self.credentials.untested(account.account_id):
            self._test(account, pair)

    def _test(self, account: WatchedAccount, pair: KeyPair) -> None:
        try:
            self.credentials.broker_account(account.account_id, pair, self.broker_of(account, pair))
        except CredentialRefused:
            log.info("credential_refused", account_id=str(account.account_id))
            self.on_refused(account.account_id, pair)
            return
        self.on_accepted(account.account_id, pair)
        self.credentials.accepted(account.account_id, pair)
