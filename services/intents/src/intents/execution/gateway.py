"""The way from a piece of work to its broker: keys, circuit breaker, the pauses a broker asks for."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from prometheus_client import Histogram
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from intents.brokers import (
    Broker,
    Brokers,
    CredentialRefused,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    UnknownBroker,
)
from intents.brokers.breaker import Breaker
from intents.execution import sending
from intents.execution.credentials import CredentialInvalid, Credentials, KeyPair, NoCredential, VaultDown
from intents.execution.metrics import CALL_SECONDS, CIRCUIT
from intents.execution.sending import IsCurrent
from intents.execution.work import Later, Unknown, Verdict, Work

log = logs.get(__name__)

PARKED_SECONDS = 2.0
NOT_REACHED_SECONDS = 0.25
_REFUSED = Later(PARKED_SECONDS, "The broker refused the credential.", "CREDENTIAL_INVALID")
_PARKED: dict[type[Exception], Later] = {
    CredentialInvalid: _REFUSED,
    NoCredential: Later(PARKED_SECONDS, "The account has no credential to use.", "CREDENTIAL_MISSING"),
    VaultDown: Later(PARKED_SECONDS, "vault_unavailable"),
    UnknownBroker: Later(60.0, "There is no adapter for this broker.", "BROKER_UNKNOWN"),
}


@dataclass
class Gateway:
    """Shared by the threads of one process."""

    brokers: Brokers
    credentials: Credentials
    refused: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    """Told of each key pair that a broker refuses; perhaps more than once."""
    is_current: IsCurrent = lambda _holder: True
    """Whether what was claimed under a holder's id may still be sent; see `liveness`."""
    _breakers: dict[tuple[str, str], Breaker] = field(default_factory=dict, init=False)
    _durations: dict[str, Histogram] = field(default_factory=dict, init=False)
    _paused: dict[UUID, float] = field(default_factory=dict, init=False)
    _refused: dict[UUID, str] = field(default_factory=dict, init=False)
    _resting: dict[UUID, float] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def carry_out(self, work: Work) -> Verdict:
        """Settle the work as far as it goes now; never raises for what brokers do."""
        decided = sending.decide_here(work)
        if decided or work.broker is None:
            return decided or Later(PARKED_SECONDS, "account_gone", "ACCOUNT_NOT_FOUND")
        if (pause := self._paused.get(work.account_id, 0.0) - time.monotonic()) > 0:
            return Later(pause, "rate_limited")
        try:
            pair = self.credentials.of(work)
            if self._refused.get(work.account_id) == pair.reference:
                raise CredentialInvalid
            broker = self.brokers.account(work.broker, work.environment, pair.secret)
        except tuple(_PARKED) as reason:
            return self._rest(work, _PARKED[type(reason)])
        return self._guarded(broker, work, pair)

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

    def _guarded(self, broker: Broker, work: Work, pair: KeyPair) -> Verdict:
        breaker = self.breaker(work.broker or "", work.environment)
        if (wait := breaker.wait()) > 0:
            return Later(wait, "circuit_open")
        started = time.monotonic()
        try:
            verdict = sending.send(broker, work, self.is_current)
        except RateLimited as limited:
            breaker.succeeded()
            pause = limited.retry_after or 1.0
            self._paused[work.account_id] = time.monotonic() + pause
            return self._rest(work, Later(pause, "rate_limited"))
        except CredentialRefused:
            breaker.succeeded()
            self._note_refusal(work, pair)
            return self._rest(work, _REFUSED)
        except NotSent as error:
            return Later(max(NOT_REACHED_SECONDS, breaker.failed()), error.reason)
        except OutcomeUnknown as error:
            breaker.failed()
            return Unknown(error.reason)
        breaker.succeeded()
        self._seconds(work.broker or "").observe(time.monotonic() - started)
        return verdict

    def _note_refusal(self, work: Work, pair: KeyPair) -> None:
        """Remembered only when it is told: otherwise nobody would ask the broker again, and it never would be."""
        self.credentials.forget(work.account_id)
        if self._refused.get(work.account_id) == pair.reference:
            return
        log.warning("credential_refused", account_id=str(work.account_id), reference=pair.reference)
        try:
            self.refused(work.account_id, pair)
        except SQLAlchemyError as error:
            log.warning("credential_refusal_not_told", account_id=str(work.account_id), error=type(error).__name__)
        else:
            self._refused[work.account_id] = pair.reference

    def _seconds(self, broker: str) -> Histogram:
        """The labels are looked up once: for a quick broker that takes longer than the call."""
        if broker not in self._durations:
            self._durations[broker] = CALL_SECONDS.labels(broker)
        return self._durations[broker]

    def circuits(self) -> dict[str, str]:
        """How each way to a broker is: closed, half_open or open. Only those that were tried are known."""
        with self._lock:
            return {f"{broker} {environment}": one.word for (broker, environment), one in self._breakers.items()}

    def breaker(self, broker: str, environment: str) -> Breaker:
        with self._lock:
            key = (broker, environment)
            if key not in self._breakers:
                gauge = CIRCUIT.labels(broker, environment)
                self._breakers[key] = Breaker(gauge.set)
            return self._breakers[key]
