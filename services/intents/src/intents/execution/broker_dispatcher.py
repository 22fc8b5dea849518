"""From a command to its broker: key pairs, the circuit breaker, the pauses that a broker requests."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from uuid import UUID

from prometheus_client import Histogram
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from intents.execution.breaker import Breaker
from intents.execution.breakers import Breakers
from intents.execution.call_log import CallLog
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
from intents.execution.metrics import CALL_SECONDS
from intents.execution.model.commands import DERIVED, LeasedCommand
from intents.execution.model.local_decisions import OTHER_ACCOUNT, decide_locally, order_to_count
from intents.execution.model.verdicts import (
    OPERATOR_REQUIRED,
    REFERENCE_PRICE_UNKNOWN,
    Decided,
    RetryLater,
    Unknown,
    Verdict,
)
from intents.execution.wait_queue import waits
from tip_brokers import (
    Broker,
    BrokerError,
    Brokers,
    CredentialRefused,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    UnknownBroker,
    Unreachable,
)

log = logs.get(__name__)

PARKED_SECONDS = 2.0
REFUSED_SECONDS = 60.0  # until a refused credential is tried again that is, or is again, to be used
NOT_REACHED_SECONDS = 0.25
_REFUSED = RetryLater(PARKED_SECONDS, "The broker refused the credential.", "CREDENTIAL_INVALID")
_PARKED: dict[type[Exception], RetryLater] = {
    CredentialInvalid: _REFUSED,
    NoCredential: RetryLater(PARKED_SECONDS, "The account has no credential to use.", "CREDENTIAL_MISSING"),
    VaultDown: RetryLater(PARKED_SECONDS, "vault_unavailable"),
    CredentialPending: RetryLater(
        PARKED_SECONDS, "The account's credential is not in the vault yet.", "CREDENTIAL_MISSING"
    ),
    CredentialChanged: RetryLater(0.0, "credential_changed"),
    UnknownBroker: RetryLater(60.0, "There is no adapter for this broker.", "BROKER_UNKNOWN"),
}


def _out_of_reach(command: LeasedCommand) -> Verdict:
    """Its order is in an account at the broker that no credential opens any more: only a person can find it there."""
    reason = "The credential under which the order was sent can no longer be used."
    if command.started_before:
        return Unknown(reason, OPERATOR_REQUIRED, OPERATOR_SECONDS)
    return RetryLater(OPERATOR_SECONDS, reason, OPERATOR_REQUIRED)


@dataclass
class BrokerDispatcher:
    """Shared by the threads of one process."""

    brokers: Brokers
    credentials: Credentials
    on_refused: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    """Called for each key pair that a broker refuses; perhaps more than once."""
    refresh: Callable[[LeasedCommand], LeasedCommand | None] = lambda command: command
    """Reads again what may stop a command; None when its lease is lost."""
    is_current: Callable[[int | None], bool] = lambda _holder: True
    """Whether what was claimed under a holder's id may still be sent; see `liveness`."""
    on_unpriced: Callable[[LeasedCommand], None] = lambda _command: None
    """Called for each command that waits for a price, whenever it is put back."""
    breakers: Breakers = field(default_factory=Breakers, init=False)
    _durations: dict[str, Histogram] = field(default_factory=dict, init=False)
    _paused: dict[UUID, float] = field(default_factory=dict, init=False)
    _refused: dict[UUID, tuple[str, float]] = field(default_factory=dict, init=False)
    """The credential of an account that its broker refused, and until when it is not tried again."""
    _parked_until: dict[UUID, float] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def dispatch(self, command: LeasedCommand, calls: CallLog | None = None) -> Verdict:
        """Settle the command as far as it goes now; never raises for what brokers do."""
        verdict = self._dispatch(command, calls or CallLog(command))
        if verdict is OTHER_ACCOUNT:
            self._hold_account(command)
        if isinstance(verdict, RetryLater) and verdict.code == REFERENCE_PRICE_UNKNOWN:
            self._request_prices(command)
        return verdict

    def _dispatch(self, command: LeasedCommand, calls: CallLog) -> Verdict:
        if order_to_count(command):
            command = self._refreshed(command) or command
        decided = decide_locally(command)
        if decided or command.broker is None:
            return decided or RetryLater(PARKED_SECONDS, "account_gone", "ACCOUNT_NOT_FOUND")
        if (pause := self._paused.get(command.account_id, 0.0) - time.monotonic()) > 0:
            return RetryLater(pause, "rate_limited")
        try:
            pairs = self._pairs(command)
        except tuple(_PARKED) as reason:
            return self._park(command, _PARKED[type(reason)])
        return self._try_all(command, pairs, calls) if pairs else _out_of_reach(command)

    def _try_all(self, command: LeasedCommand, pairs: Sequence[KeyPair], calls: CallLog) -> Verdict:
        breaker = self.breakers.of(command.broker or "", command.environment)
        if breaker.wait(command.organization_id) > 0:
            return waits(command, has_failed=breaker.has_failed(command.organization_id, command.action_id))
        try:
            for pair in pairs:
                verdict = self._try(breaker, command, pair, calls)
                if verdict is not None:
                    return verdict
        except Exception:
            breaker.abandon_trial(command.organization_id)
            raise
        breaker.abandon_trial(command.organization_id)
        return _out_of_reach(command)

    def _pairs(self, command: LeasedCommand) -> list[KeyPair]:
        """With what the command may be carried out.

        What nobody has sent yet goes wherever the account's credential leads; the rest stays where its order is.
        """
        if command.bound_credential in (None, command.credential or DERIVED):
            pairs = [self._best(command)]
        else:
            pairs = list(self.credentials.bound(command.account_id, command.broker or "", command.bound_credential))
        if pairs and all(self._is_refused(command.account_id, pair) for pair in pairs):
            raise CredentialInvalid
        return pairs

    def _best(self, command: LeasedCommand) -> KeyPair:
        """The pair that is recorded as the one under which the command is sent; any other must be recorded first."""
        pair = self.credentials.of(command)
        if pair.reference != (command.credential or DERIVED):
            raise CredentialChanged
        return pair

    def _try(self, breaker: Breaker, command: LeasedCommand, pair: KeyPair, calls: CallLog) -> Verdict | None:
        """What comes of the command with this pair; None if the pair opens another account than the order's."""
        started = time.monotonic()
        try:
            broker = self.brokers.account(command.broker or "", command.environment, pair.secret)
            opened = self._opened(command, pair, broker)
            if command.bound_credential is not None and opened != command.opened_account:
                return None
            may_send = partial(self.is_current, command.holder)
            verdict = Dispatch(calls.of(broker), command, self._refreshed, may_send).run()
        except tuple(_PARKED) as reason:
            breaker.abandon_trial(command.organization_id)
            return self._park(command, _PARKED[type(reason)])
        except BrokerError as error:
            return self._failed(breaker, command, pair, error)
        if isinstance(verdict, Decided) or (isinstance(verdict, RetryLater) and not verdict.absent):
            breaker.abandon_trial(command.organization_id)  # perhaps the broker was not queried
        else:
            breaker.succeeded(command.organization_id)
        self._seconds(command.broker or "").observe(time.monotonic() - started)
        return verdict

    def parked_accounts(self) -> list[UUID]:
        """Accounts of which nothing can be sent for now: to claim all that waits there would hold up the others."""
        now = time.monotonic()
        with self._lock:
            self._parked_until = {account_id: until for account_id, until in self._parked_until.items() if until > now}
            return list(self._parked_until)

    def _park(self, command: LeasedCommand, later: RetryLater) -> RetryLater:
        with self._lock:
            self._parked_until[command.account_id] = time.monotonic() + min(later.seconds, PARKED_SECONDS)
        return later

    def _refreshed(self, command: LeasedCommand) -> LeasedCommand | None:
        """Without the database nobody knows whether it may still be sent: so it waits."""
        try:
            return self.refresh(command)
        except SQLAlchemyError as error:
            log.warning("facts_not_refreshed", action_id=str(command.action_id), error=type(error).__name__)
            return None

    def _hold_account(self, command: LeasedCommand) -> None:
        """Let the positions of the account count to which the command is to be sent, before it is decided again."""
        try:
            self.credentials.hold(command.account_id, command.credential or DERIVED, command.opened_account or "")
        except (SQLAlchemyError, VaultDown) as error:
            log.warning("account_not_held", account_id=str(command.account_id), error=type(error).__name__)

    def _request_prices(self, command: LeasedCommand) -> None:
        try:
            self.on_unpriced(command)
        except SQLAlchemyError as error:
            log.warning("prices_not_requested", action_id=str(command.action_id), error=type(error).__name__)

    def _opened(self, command: LeasedCommand, pair: KeyPair, broker: Broker) -> str:
        """The account which the pair opens. Nothing is sent before that is recorded, also not after a restore."""
        if command.bound_credential is None and command.opened_account is None:
            self.credentials.forget_login(command.account_id, pair)
        try:
            opened = self.credentials.broker_account(command.account_id, pair, broker)
        except OutcomeUnknown as error:
            raise NotSent(error.reason) from None
        if command.bound_credential is None and command.held_account not in (None, opened):
            raise CredentialChanged  # it was decided by the positions of another account
        return opened

    def _failed(self, breaker: Breaker, command: LeasedCommand, pair: KeyPair, error: BrokerError) -> Verdict:
        cause = error.__cause__ if isinstance(error, QueryFailed) else error
        connected = not isinstance(cause, Unreachable)
        pause, is_open = 0.0, False
        if isinstance(cause, (RateLimited, CredentialRefused, Refused)):
            breaker.succeeded(command.organization_id)
        elif isinstance(cause, NotSent) and cause.retry_after is not None:
            breaker.abandon_trial(command.organization_id)  # by the adapter's own wish, which says nothing of the line
            pause = cause.retry_after
        else:
            pause = breaker.failed(command.organization_id, connected=connected, command_id=command.action_id)
            is_open = pause > 0
        if isinstance(cause, RateLimited):
            self._paused[command.account_id] = time.monotonic() + (cause.retry_after or 1.0)
        if isinstance(cause, CredentialRefused):
            self._note_refusal(command, pair)
        if isinstance(error, OutcomeUnknown):
            return Unknown(error.reason)
        if isinstance(error, RateLimited):
            return self._park(command, RetryLater(error.retry_after or 1.0, "rate_limited"))
        if isinstance(error, CredentialRefused):
            return self._park(command, _REFUSED)
        reason = error.reason if isinstance(error, NotSent) else type(error).__name__
        if is_open:  # what was tried and not answered gives up its place
            placed = replace(command, waiting_since=None) if connected else command
            return waits(placed, has_failed=connected, reason=reason)
        return RetryLater(max(NOT_REACHED_SECONDS, pause), reason)

    def _note_refusal(self, command: LeasedCommand, pair: KeyPair) -> None:
        """Remembered only once it is reported: otherwise the broker would not be tried again, and it never would be.

        A pair that the platform makes itself has no owner to notify and no other version: it is tried again.
        """
        self.credentials.forget(command.account_id)
        if self._is_refused(command.account_id, pair):
            return
        log.warning("credential_refused", account_id=str(command.account_id), reference=pair.reference)
        try:
            self.on_refused(command.account_id, pair)
        except SQLAlchemyError as error:
            log.warning(
                "credential_refusal_not_reported", account_id=str(command.account_id), error=type(error).__name__
            )
        else:
            if pair.credential_id is not None:
                self._refused[command.account_id] = (pair.reference, time.monotonic() + REFUSED_SECONDS)

    def _is_refused(self, account_id: UUID, pair: KeyPair) -> bool:
        """For a minute: by then accounts has marked it, unless somebody had it tested and the broker accepts it."""
        reference, until = self._refused.get(account_id, ("", 0.0))
        return reference == pair.reference and time.monotonic() < until

    def _seconds(self, broker: str) -> Histogram:
        """The labels are looked up once: for a quick broker that takes longer than the call."""
        if broker not in self._durations:
            self._durations[broker] = CALL_SECONDS.labels(broker)
        return self._durations[broker]
