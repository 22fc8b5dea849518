"""The reconciler: receives the updates of brokers, and compares what they may have missed. Any number may run."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID, uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import db, logs
from chassis.worker.outage import unless_unavailable
from intents.execution import store, streams
from intents.execution.account_reads import ENROLL_SECONDS, AccountReads
from intents.execution.comparison import Comparison
from intents.execution.credential_tests import CredentialTests, ReportOutcome
from intents.execution.credentials import CredentialInvalid, CredentialPending, Credentials, KeyPair, NoCredential
from intents.execution.metrics import RECONCILIATIONS
from intents.execution.model.known_orders import RestoredEpoch, WatchedAccount
from intents.execution.model.read_schedule import ReadSchedule
from intents.execution.recorder import Recorder
from intents.execution.streams import NO_KEYS
from intents.execution.watches import NEVER, Watch, by_lane, may_take, share_streams
from tip_brokers import BrokerError, Brokers, RateLimited

log = logs.get(__name__)

LEASE_SECONDS, NO_KEYS_SECONDS = 6.0, 30.0
RENEW_SECONDS, SHORTEST_RENEW_SECONDS = 1.0, 0.1
REST_SECONDS, REST_TURN_SECONDS = 5.0, 0.25  # between two renewals while there is no account to follow or to read
CALM_SECONDS, SOON_SECONDS = 0.05, 0.01  # until the next check of which accounts are due
RECONCILE_THREADS = 8  # for each broker and environment, of which no organization takes all: see `fair_share`
MOST_THREADS = 128  # of all of them together


@dataclass
class Reconciler:
    engine: Engine
    brokers: Brokers
    credentials: Credentials
    recorder: Recorder
    every_seconds: float
    streams: int
    on_refused: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    on_accepted: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    """Called for a key pair that a broker refuses, at every reconciliation, and for a pending one that it accepts."""
    schedule: ReadSchedule = field(default_factory=ReadSchedule)
    quote_seconds: float = 5.0
    on_tested: ReportOutcome = lambda _account_id, _credential, _outcome: None
    """Called with what came of a test of a credential that was requested."""
    _watches: dict[UUID, Watch] = field(default_factory=dict, init=False)
    _token: UUID = field(default_factory=uuid4, init=False)
    _restored: RestoredEpoch | None = field(default=None, init=False)
    _deleted_at: float = field(default=0.0, init=False)
    _enrolled_at: float = field(default=0.0, init=False)
    """When orders of deleted accounts are followed next, and when accounts are enrolled next."""
    _wake: threading.Event = field(default_factory=threading.Event, init=False)
    _is_attentive: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._reads = AccountReads(self.engine, self._token, self.schedule)
        self._comparison = Comparison(
            self.engine, self.brokers, self.credentials, self.recorder, self._reads, self.quote_seconds, self.on_refused
        )
        broker_of = self._comparison.broker_of
        self._tests = CredentialTests(self.credentials, broker_of, self.on_accepted, self.on_refused, self.on_tested)

    def wake(self) -> None:
        """Claim what is due at once."""
        self._wake.set()

    def attend(self) -> None:
        """Something was submitted, which may give it an account to follow: rest no longer than a second."""
        self._is_attentive = True

    def run(self, stop: threading.Event) -> None:
        self.recorder.start(stop.is_set)
        with ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="reconcile") as pool:
            while not stop.is_set():
                self._wake.clear()
                self._is_attentive = False
                self._carefully(self._enroll)
                self._carefully(self._renew)
                self._carefully(self._follow_deleted_accounts)
                self._reconcile_until_renewal(pool, stop)
            for watch in self._watches.values():
                watch.end_stream()
        self._carefully(self._release)
        self.recorder.close()

    def _reconcile_until_renewal(self, pool: ThreadPoolExecutor, stop: threading.Event) -> None:
        """For a second, longer at rest, or until woken; wake-ups that come close together are one."""
        began, passed = time.monotonic(), 0.0
        while not stop.is_set() and passed < (RENEW_SECONDS if self._watches or self._is_attentive else REST_SECONDS):
            is_early = passed < SHORTEST_RENEW_SECONDS
            if self._wake.is_set() and not is_early:
                return
            calm = CALM_SECONDS if self._watches or is_early else REST_TURN_SECONDS
            (time.sleep if is_early else self._wake.wait)(SOON_SECONDS if self._reconcile_due(pool) else calm)
            passed = time.monotonic() - began

    def _carefully(self, step: Callable[[], object]) -> None:
        unless_unavailable("intents-reconciler", step, None)

    def _enroll(self) -> None:
        now = time.monotonic()
        if now >= self._enrolled_at:
            self._reads.enroll()
            self._enrolled_at = now + ENROLL_SECONDS

    def _renew(self) -> None:
        """Renew the leases of our accounts, take those that nobody leases or that are due, drop the others."""
        now = time.monotonic()
        due = set(self._reads.claim(LEASE_SECONDS))
        keep = {key for key, watch in self._watches.items() if watch.is_claimed or watch.is_followed(now)}
        mine = {account.account_id: account for account in self._lease_accounts([*(keep | due)])}
        for account_id in self._watches.keys() - mine.keys():
            self._watches.pop(account_id).end_stream()
        for account in mine.values():
            watch = self._watches.setdefault(account.account_id, Watch(account, active_at=NEVER))
            watch.follow(account, self.every_seconds, is_due=account.account_id in due, now=now)
        self._open_streams()

    def _lease_accounts(self, keep: Sequence[UUID]) -> list[WatchedAccount]:
        with self.engine.begin() as tx:
            self._restored = store.restored_epoch(tx)
            epoch = self._restored.epoch if self._restored else None
            return store.lease_accounts(tx, self._token, keep, LEASE_SECONDS, epoch)

    def _release(self) -> None:
        with self.engine.begin() as tx:
            store.release_accounts(tx, self._token)

    def _follow_deleted_accounts(self) -> None:
        now = time.monotonic()
        if now < self._deleted_at:
            return
        self._deleted_at = now + self.every_seconds
        with db.reading(self.engine) as tx:
            orders = store.orders_of_deleted_accounts(tx)
        for order in orders:
            self.recorder.put(order)

    def _open_streams(self) -> None:
        now = time.monotonic()
        followed = [watch for watch in self._watches.values() if watch.is_followed(now) and self._streams(watch)]
        for watch, stop in share_streams(followed, self.streams):
            threading.Thread(target=self._listen, args=(watch, stop), name="stream", daemon=True).start()

    def _streams(self, watch: Watch) -> bool:
        can = self.brokers.capabilities(watch.account.broker)
        return can is not None and can.streams

    def _listen(self, watch: Watch, stop: threading.Event) -> None:
        streams.listen(watch, stop, self._comparison.pair_of, self._comparison.broker_of, self.recorder.put)

    def _reconcile_due(self, pool: ThreadPoolExecutor) -> bool:
        """The most overdue first, as far as threads are free for their organizations; whether somebody has to wait."""
        now = time.monotonic()
        due = [watch for watch in self._watches.values() if watch.due_at <= now and not watch.is_busy]
        lanes = by_lane(watch for watch in self._watches.values() if watch.is_busy) if due else {}
        begun = 0
        for watch in sorted(due, key=lambda watch: watch.due_at):
            if may_take(watch, held := lanes[watch.account.lane], RECONCILE_THREADS):
                watch.begin_comparison(now, self.every_seconds)
                held[watch.account.organization_id] += 1
                begun += 1
                pool.submit(self._reconcile, watch)
        return begun < len(due)

    def _reconcile(self, watch: Watch) -> None:
        account_id, began, pause = watch.account.account_id, time.monotonic(), 0.0
        try:
            pause = self._tests.run(watch.account)
            self._record_differences(watch)
            if not pause:
                watch.end_claim(began)
        except (BrokerError, *NO_KEYS) as error:
            pause = max(pause, self._pause(watch, error))
            RECONCILIATIONS.labels("failed").inc()
            log.info("reconcile_failed", account_id=str(account_id), error=type(error).__name__)
        except SQLAlchemyError as error:
            RECONCILIATIONS.labels("failed").inc()
            log.warning("reconcile_failed", account_id=str(account_id), error=type(error).__name__)
        except Exception as error:
            log.error("reconcile_failed", account_id=str(account_id), exc_info=error)
        finally:
            self._carefully(partial(self._end, watch, began, pause))

    def _record_differences(self, watch: Watch) -> None:
        found = []
        for report in self._comparison.differences(watch, self._restored):  # also if it fails in the end
            self.recorder.put(report)
            found.append(report.order.broker_order_id)
        watch.end_comparison(self.every_seconds, found)
        RECONCILIATIONS.labels("different" if found else "same").inc()
        now = time.monotonic()
        if found and watch.is_followed(now):  # orders of other origin make no idle account busy
            watch.active_at = now

    def _pause(self, watch: Watch, error: Exception) -> float:
        """Seconds until the account is tried again, at the least."""
        if isinstance(error, RateLimited):
            pause = error.retry_after or self.every_seconds
            watch.due_at = watch.paused_until = time.monotonic() + pause
            return pause
        if isinstance(error, CredentialPending) or not isinstance(error, (NoCredential, CredentialInvalid)):
            return 0.0
        if watch.account.is_restored:
            watch.due_at = time.monotonic() + NO_KEYS_SECONDS  # there may be many of them
        return self.schedule.idle_seconds  # another credential is an event, which is not waited for

    def _end(self, watch: Watch, began: float, pause: float) -> None:
        """After a reconciliation: what failed is tried again later, and what is not followed is let go."""
        try:
            if watch.end_claim(began):
                self._reads.postpone(watch.account.account_id, pause)
            if not watch.is_claimed and not watch.is_followed(time.monotonic()):
                self._reads.release(watch.account.account_id)
        finally:
            watch.is_busy = False
