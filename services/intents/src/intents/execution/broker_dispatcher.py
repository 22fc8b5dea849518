"""The way from a piece of work to its broker: keys, circuit breaker, the pauses a broker asks for."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from prometheus_client import Histogram
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from intents.brokers import (
    Broker,
    BrokerError,
    Brokers,
    CredentialRefused,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    UnknownBroker,
    Unreachable,
)
from intents.brokers.breaker import Breaker
from intents.execution.credentials import (
    CredentialChanged,
    CredentialInvalid,
    CredentialPending,
    Credentials,
    KeyPair,
    NoCredential,
    VaultDown,
)
from intents.execution.dispatch import OPERATOR_SECONDS, Dispatch, QueryFailed
from intents.execution.metrics import CALL_SECONDS, CIRCUIT, CIRCUITS_OF_ORGANIZATIONS
from intents.execution.model.commands import DERIVED, Work
from intents.execution.model.local_decisions import decide_here
from intents.execution.model.verdicts import OPERATOR_REQUIRED, Decided, Later, Unknown, Verdict

log = logs.get(__name__)

PARKED_SECONDS = 2.0
NOT_REACHED_SECONDS = 0.25
_REFUSED = Later(PARKED_SECONDS, "The broker refused the credential.", "CREDENTIAL_INVALID")
_PARKED: dict[type[Exception], Later] = {
    CredentialInvalid: _REFUSED,
    NoCredential: Later(PARKED_SECONDS, "The account has no credential to use.", "CREDENTIAL_MISSING"),
    VaultDown: Later(PARKED_SECONDS, "vault_unavailable"),
    CredentialPending: Later(PARKED_SECONDS, "The account's credential is not in the vault yet.", "CREDENTIAL_MISSING"),
    CredentialChanged: Later(0.0, "credential_changed"),
    UnknownBroker: Later(60.0, "There is no adapter for this broker.", "BROKER_UNKNOWN"),
}


def _out_of_reach(work: Work) -> Verdict:
    """Its order is in an account at the broker that no credential opens any more: only a person can look there."""
    reason = "The credential under which the order was sent can no longer be used."
    if work.started_before:
        return Unknown(reason, OPERATOR_REQUIRED, OPERATOR_SECONDS)
    return Later(OPERATOR_SECONDS, reason, OPERATOR_REQUIRED)


@dataclass
class Gateway:
    """Shared by the threads of one process."""

    brokers: Brokers
    credentials: Credentials
    refused: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    """Told of each key pair that a broker refuses; perhaps more than once."""
    refresh: Callable[[Work], Work | None] = lambda work: work
    """Reads again what may stop a command; None when its lease is lost."""
    is_current: Callable[[int | None], bool] = lambda _holder: True
    """Whether what was claimed under a holder's id may still be sent; see `liveness`."""
    _breakers: dict[tuple[str, str], Breaker] = field(default_factory=dict, init=False)
    _durations: dict[str, Histogram] = field(default_factory=dict, init=False)
    _paused: dict[UUID, float] = field(default_factory=dict, init=False)
    _refused: dict[UUID, str] = field(default_factory=dict, init=False)
    _resting: dict[UUID, float] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def carry_out(self, work: Work) -> Verdict:
        """Settle the work as far as it goes now; never raises for what brokers do."""
        decided = decide_here(work)
        if decided or work.broker is None:
            return decided or Later(PARKED_SECONDS, "account_gone", "ACCOUNT_NOT_FOUND")
        if (pause := self._paused.get(work.account_id, 0.0) - time.monotonic()) > 0:
            return Later(pause, "rate_limited")
        try:
            pairs = self._pairs(work)
        except tuple(_PARKED) as reason:
            return self._rest(work, _PARKED[type(reason)])
        return self._try_all(work, pairs) if pairs else _out_of_reach(work)

    def _try_all(self, work: Work, pairs: Sequence[KeyPair]) -> Verdict:
        breaker = self.breaker(work.broker or "", work.environment)
        if (wait := breaker.wait(work.organization_id)) > 0:
            is_cancel = work.type == "CANCEL"
            return Later(breaker.retry_after(work.organization_id, wait, is_cancel=is_cancel), "circuit_open")
        try:
            for pair in pairs:
                verdict = self._try(breaker, work, pair)
                if verdict is not None:
                    return verdict
        except Exception:
            breaker.let_another_try(work.organization_id)
            raise
        breaker.let_another_try(work.organization_id)
        return _out_of_reach(work)

    def _pairs(self, work: Work) -> list[KeyPair]:
        """With what the command may be carried out.

        What nobody has sent yet goes wherever the account's credential leads; the rest stays where its order is.
        """
        if work.bound_credential in (None, work.credential or DERIVED):
            pairs = [self._best(work)]
        else:
            pairs = list(self.credentials.bound(work.account_id, work.broker or "", work.bound_credential))
        if pairs and all(self._refused.get(work.account_id) == pair.reference for pair in pairs):
            raise CredentialInvalid
        return pairs

    def _best(self, work: Work) -> KeyPair:
        """The pair that is recorded as the one under which the command is sent; any other must be recorded first."""
        pair = self.credentials.of(work)
        if pair.reference != (work.credential or DERIVED):
            raise CredentialChanged
        return pair

    def _try(self, breaker: Breaker, work: Work, pair: KeyPair) -> Verdict | None:
        """What comes of the command with this pair; None if the pair opens another account than the order's."""
        started = time.monotonic()
        try:
            broker = self.brokers.account(work.broker or "", work.environment, pair.secret)
            opened = self._opened(work, pair, broker)
            if work.bound_credential is not None and opened != work.opened_account:
                return None
            verdict = Dispatch(broker, work, self._refreshed, lambda: self.is_current(work.holder)).run()
        except tuple(_PARKED) as reason:
            breaker.let_another_try(work.organization_id)
            return self._rest(work, _PARKED[type(reason)])
        except BrokerError as error:
            return self._failed(breaker, work, pair, error)
        if isinstance(verdict, Decided) or (isinstance(verdict, Later) and not verdict.absent):
            breaker.let_another_try(work.organization_id)  # nobody may have asked the broker
        else:
            breaker.succeeded(work.organization_id)
        self._seconds(work.broker or "").observe(time.monotonic() - started)
        return verdict

    def resting(self) -> list[UUID]:
        """Accounts of which nothing can be sent for now: to claim all that waits there would hold up the others."""
        now = time.monotonic()
        with self._lock:
            self._resting = {account_id: until for account_id, until in self._resting.items() if until > now}
            return list(self._resting)

    def _rest(self, work: Work, later: Later) -> Later:
        with self._lock:
            self._resting[work.account_id] = time.monotonic() + min(later.seconds, PARKED_SECONDS)
        return later

    def _refreshed(self, work: Work) -> Work | None:
        """Without the database nobody knows whether it may still be sent: so it waits."""
        try:
            return self.refresh(work)
        except SQLAlchemyError as error:
            log.warning("facts_not_refreshed", action_id=str(work.action_id), error=type(error).__name__)
            return None

    def _opened(self, work: Work, pair: KeyPair, broker: Broker) -> str:
        """The account which the pair opens. Nothing is sent before that is recorded, also not after a restore."""
        if work.bound_credential is None and work.opened_account is None:
            self.credentials.forget_login(work.account_id, pair)
        try:
            return self.credentials.broker_account(work.account_id, pair, broker)
        except OutcomeUnknown as error:
            raise NotSent(error.reason) from None

    def _failed(self, breaker: Breaker, work: Work, pair: KeyPair, error: BrokerError) -> Verdict:
        cause = error.__cause__ if isinstance(error, QueryFailed) else error
        pause = 0.0
        if isinstance(cause, (RateLimited, CredentialRefused)):
            breaker.succeeded(work.organization_id)
        else:
            pause = breaker.failed(work.organization_id, connected=not isinstance(cause, Unreachable))
        if isinstance(cause, RateLimited):
            self._paused[work.account_id] = time.monotonic() + (cause.retry_after or 1.0)
        if isinstance(cause, CredentialRefused):
            self._note_refusal(work, pair)
        if isinstance(error, OutcomeUnknown):
            return Unknown(error.reason)
        if isinstance(error, RateLimited):
            return self._rest(work, Later(error.retry_after or 1.0, "rate_limited"))
        if isinstance(error, CredentialRefused):
            return self._rest(work, _REFUSED)
        reason = error.reason if isinstance(error, NotSent) else type(error).__name__
        return Later(max(NOT_REACHED_SECONDS, pause), reason)

    def _note_refusal(self, work: Work, pair: KeyPair) -> None:
        """Remembered only when it is told: otherwise nobody would ask the broker again, and it never would be.

        A pair that the platform makes itself has no owner to tell and no other version to wait for: it is tried again.
        """
        self.credentials.forget(work.account_id)
        if self._refused.get(work.account_id) == pair.reference:
            return
        log.warning("credential_refused", account_id=str(work.account_id), reference=pair.reference)
        try:
            self.refused(work.account_id, pair)
        except SQLAlchemyError as error:
            log.warning("credential_refusal_not_told", account_id=str(work.account_id), error=type(error).__name__)
        else:
            if pair.credential_id is not None:
                self._refused[work.account_id] = pair.reference

    def _seconds(self, broker: str) -> Histogram:
        """The labels are looked up once: for a quick broker that takes longer than the call."""
        if broker not in self._durations:
            self._durations[broker] = CALL_SECONDS.labels(broker)
        return self._durations[broker]

    def circuits(self) -> dict[str, str]:
        """How each way to a broker is: closed, half_open or open. Only those that were tried are known."""
        with self._lock:
            return {f"{broker} {environment}": made.word for (broker, environment), made in self._breakers.items()}

    def breaker(self, broker: str, environment: str) -> Breaker:
        with self._lock:
            key = (broker, environment)
            if key not in self._breakers:
                gauges = CIRCUIT.labels(*key), CIRCUITS_OF_ORGANIZATIONS.labels(*key)
                self._breakers[key] = Breaker(gauges[0].set, gauges[1].set)
            return self._breakers[key]
