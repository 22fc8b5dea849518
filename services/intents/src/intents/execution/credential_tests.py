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

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0
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
    _next: dict[str, tuple[float, float]] = field(default_factory=dict, init=False)
    """By reference: when a credential is tested next, and how long after that if the broker does not answer."""

    def run(self, account: WatchedAccount) -> float:
        """Test what is pending and in the vault, each by itself; seconds until one is to be tried again, or none.

        It never raises for what brokers do, or for a secret, since the account is to be read all the same.
        """
        untested = self.credentials.untested(account.account_id)
        for credential in untested:
            if credential.test_id is not None:
                self.on_tested(account.account_id, credential, self._outcome(account, credential))
        return max((self._tried(account, credential) for credential in untested if credential.is_new), default=0.0)

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

    def _tried(self, account: WatchedAccount, credential: UntestedCredential) -> float:
        """A broker that cannot be reached leaves it pending, to be tried again the less often, the longer it takes."""
        due_at, pause = self._next.get(credential.reference, (-math.inf, FIRST_PAUSE_SECONDS))
        if time.monotonic() < due_at:
            return due_at - time.monotonic()
        try:
            self._test(account, self.credentials.reveal(credential))
        except (BrokerError, *_UNUSABLE) as error:
            log.info("credential_test_failed", account_id=str(account.account_id), error=type(error).__name__)
            wished = error.retry_after if isinstance(error, RateLimited) else None
            waits = max(pause, wished or 0.0)
            self._next[credential.reference] = time.monotonic() + waits, min(2 * pause, LONGEST_PAUSE_SECONDS)
            return waits
        self._next.pop(credential.reference, None)
        return 0.0

    def _test(self, account: WatchedAccount, pair: KeyPair) -> None:
        try:
            self.credentials.broker_account(account.account_id, pair, self.broker_of(account, pair))
        except CredentialRefused:
            log.info("credential_refused", account_id=str(account.account_id))
            self.on_refused(account.account_id, pair)
            return
        self.on_accepted(account.account_id, pair)
        self.credentials.accepted(account.account_id, pair)
