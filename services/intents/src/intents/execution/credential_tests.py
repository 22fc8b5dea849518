"""A credential is tested by logging in with it: when it is new, and when somebody requests it."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
from tip_brokers import Broker, BrokerError, CredentialRefused, RateLimited, UnknownBroker

log = logs.get(__name__)

_UNUSABLE = (NoCredential, VaultDown, UnknownBroker, KeyError)  # KeyError: a secret that lacks what the broker needs

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
    _paused: dict[str, float] = field(default_factory=dict, init=False)
    """Until when the broker wishes that a credential is not tested."""

    def run(self, account: WatchedAccount) -> bool:
        """Test what is pending and in the vault, each by itself; whether none has to be tried again.

        It never raises for what brokers do, or for a secret, since the account is to be read all the same.
        """
        untested = self.credentials.untested(account.account_id)
        for credential in untested:
            if credential.test_id is not None:
                self.on_tested(account.account_id, credential, self._outcome(account, credential))
        settled = [self._is_settled(account, credential) for credential in untested if credential.is_new]
        return all(settled)

    def _outcome(self, account: WatchedAccount, credential: UntestedCredential) -> str:
        """Of a login that changes nothing: orders may be sent with this credential, or with another, at this moment."""
        try:
            self.broker_of(account, self.credentials.reveal(credential)).account_id()
        except CredentialRefused:
            return REFUSED
        except (BrokerError, *_UNUSABLE) as error:
            log.info("credential_test_failed", account_id=str(account.account_id), error=type(error).__name__)
            return FAILED
        return ACCEPTED

    def _is_settled(self, account: WatchedAccount, credential: UntestedCredential) -> bool:
        """A broker that cannot be reached leaves it pending."""
        if time.monotonic() < self._paused.get(credential.reference, -math.inf):
            return False
        try:
            self._test(account, self.credentials.reveal(credential))
        except (BrokerError, *_UNUSABLE) as error:
            log.info("credential_test_failed", account_id=str(account.account_id), error=type(error).__name__)
            if isinstance(error, RateLimited) and error.retry_after:
                self._paused[credential.reference] = time.monotonic() + error.retry_after
            return False
        return True

    def _test(self, account: WatchedAccount, pair: KeyPair) -> None:
        try:
            self.credentials.broker_account(account.account_id, pair, self.broker_of(account, pair))
        except CredentialRefused:
            log.info("credential_refused", account_id=str(account.account_id))
            self.on_refused(account.account_id, pair)
            return
        self.on_accepted(account.account_id, pair)
        self.credentials.accepted(account.account_id, pair)
