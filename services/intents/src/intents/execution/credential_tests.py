"""A credential is tested by logging in with it: when it is new, and when somebody requests it."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from chassis import logs
from intents.execution.credentials import (
    ACCEPTED,
    FAILED,
    REFUSED,
    Credentials,
    KeyPair,
    NoCredential,
    UntestedCredential,
    VaultDown,
)
from intents.execution.model.known_orders import WatchedAccount
from tip_brokers import Broker, BrokerError, CredentialRefused

log = logs.get(__name__)

Report = Callable[[UUID, KeyPair], None]
ReportOutcome = Callable[[UUID, UntestedCredential, str], None]


@dataclass(frozen=True)
class CredentialTests:
    credentials: Credentials
    broker_of: Callable[[WatchedAccount, KeyPair], Broker]
    on_accepted: Report
    on_refused: Report
    on_tested: ReportOutcome
    """Called with what came of a test that was requested."""

    def run(self, account: WatchedAccount) -> None:
        """Test what is pending and in the vault. A broker that cannot be reached leaves it pending, and raises."""
        untested = self.credentials.untested(account.account_id)
        for credential in untested:
            if credential.test_id is not None:
                self.on_tested(account.account_id, credential, self._outcome(account, credential))
        for credential in untested:
            if credential.is_new:
                self._test(account, self.credentials.reveal(credential))

    def _outcome(self, account: WatchedAccount, credential: UntestedCredential) -> str:
        """Of a login that changes nothing: orders may be sent with this credential, or with another, at this moment.

        It never raises for what brokers do, since the account is to be read all the same.
        """
        try:
            self.broker_of(account, self.credentials.reveal(credential)).account_id()
        except CredentialRefused:
            return REFUSED
        except (BrokerError, NoCredential, VaultDown) as error:
            log.info("credential_test_failed", account_id=str(account.account_id), error=type(error).__name__)
            return FAILED
        return ACCEPTED

    def _test(self, account: WatchedAccount, pair: KeyPair) -> None:
        try:
            self.credentials.broker_account(account.account_id, pair, self.broker_of(account, pair))
        except CredentialRefused:
            log.info("credential_refused", account_id=str(account.account_id))
            self.on_refused(account.account_id, pair)
            return
        self.on_accepted(account.account_id, pair)
        self.credentials.accepted(account.account_id, pair)
