"""The reconciler: receives the updates of brokers, and compares what they may have missed. Any number may run."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from chassis import logs
from chassis.worker.outage import unless_unavailable
from intents.brokers import Broker, BrokerError, Brokers, CredentialRefused, OrderUpdate, RateLimited, UnknownBroker
from intents.execution import reconciliation, recorder, store
from intents.execution.credentials import (
    CredentialInvalid,
    CredentialPending,
    Credentials,
    KeyPair,
    NoCredential,
    VaultDown,
)
from intents.execution.metrics import RECONCILIATIONS, STREAMS
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, RestoredEpoch, WatchedAccount
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.recorder import Recorder
from intents.execution.watches import Watch, by_organization, may_take, share_streams

log = logs.get(__name__)

LEASE_SECONDS = 6.0
RENEW_SECONDS = 1.0
CALM_SECONDS, SOON_SECONDS = 0.05, 0.01  # until the next check of which accounts are due
LINGER_SECONDS = 600.0  # how long an account is listened to after its last order has ended
RECONCILE_THREADS = 8  # of which no organization takes all: see `fair_share`
FORGOTTEN = timedelta(days=30)  # how far back orders are adopted of an account of which a restored log knows nothing
NO_KEYS_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
_NO_KEYS = (CredentialInvalid, NoCredential, VaultDown, UnknownBroker, KeyError)


@dataclass
class Reconciler:
    engine: Engine
    brokers: Brokers
    credentials: Credentials
    recorder: Recorder
    every_seconds: float
    streams: int
    on_refused: Callable[[UUID, KeyPair], None] = lambda _account_id, _pair: None
    """Called for a key pair that a broker refuses, at every reconciliation."""
    _watches: dict[UUID, Watch] = field(default_factory=dict, init=False)
    _token: UUID = field(default_factory=uuid4, init=False)
    _restored: RestoredEpoch | None = field(default=None, init=False)
    _deleted_at: float = field(default=0.0, init=False)
    """When orders of deleted accounts are followed next."""

    def run(self, stop: threading.Event) -> None:
        self.recorder.start(stop.is_set)
        with ThreadPoolExecutor(RECONCILE_THREADS, thread_name_prefix="reconcile") as pool:
            while not stop.is_set():
                self._carefully(self._renew)
                self._carefully(self._follow_deleted_accounts)
                renew_at = time.monotonic() + RENEW_SECONDS
                while time.monotonic() < renew_at and not stop.is_set():
                    stop.wait(SOON_SECONDS if self._reconcile_due(pool) else CALM_SECONDS)
            for watch in self._watches.values():
                watch.end_stream()
        self._carefully(self._release)
        self.recorder.close()

    def _carefully(self, step: Callable[[], object]) -> None:
        unless_unavailable("intents-reconciler", step, None)

    def _renew(self) -> None:
        """Renew the leases of our accounts, take those that nobody leases, drop those without activity."""
        now = time.monotonic()
        keep = [account_id for account_id, watch in self._watches.items() if now - watch.active_at < LINGER_SECONDS]
        mine = {account.account_id: account for account in self._lease_accounts(keep)}
        for account_id in self._watches.keys() - mine.keys():
            self._watches.pop(account_id).end_stream()
        for account_id in mine.keys() - self._watches.keys():
            self._begin(mine[account_id])
        for account in mine.values():
            watch = self._watches[account.account_id]
            watch.account = account
            if account.is_urgent and now >= watch.paused_until:
                watch.due_at = 0.0
        self._open_streams()

    def _lease_accounts(self, keep: Sequence[UUID]) -> list[WatchedAccount]:
        with self.engine.begin() as tx:
            self._restored = store.restored_epoch(tx)
        epoch = self._restored.epoch if self._restored else None
        with self.engine.begin() as tx:
            return store.lease_accounts(tx, self._token, keep, LEASE_SECONDS, epoch)

    def _release(self) -> None:
        with self.engine.begin() as tx:
            store.release_accounts(tx, self._token)

    def _follow_deleted_accounts(self) -> None:
        now = time.monotonic()
        if now < self._deleted_at:
            return
        self._deleted_at = now + self.every_seconds
        with self.engine.connect() as tx:
            orders = store.orders_of_deleted_accounts(tx)
        for order in orders:
            self.recorder.put(order)

    def _begin(self, account: WatchedAccount) -> None:
        self._watches[account.account_id] = Watch(account)

    def _open_streams(self) -> None:
        for watch, stop in share_streams(list(self._watches.values()), self.streams):
            threading.Thread(target=self._listen, args=(watch, stop), name="stream", daemon=True).start()

    def _pair(self, account: WatchedAccount) -> KeyPair:
        return self.credentials.pair(account.account_id, account.broker)

    def _broker(self, account: WatchedAccount, pair: KeyPair) -> Broker:
        return self.brokers.account(account.broker, account.environment, pair.secret)

    def _listen(self, watch: Watch, stop: threading.Event) -> None:
        """Until `stop` is set; a line that breaks is opened again, and what was missed is reconciled."""
        account_id, pause, listening = watch.account.account_id, FIRST_PAUSE_SECONDS, False

        def on_ready() -> None:
            nonlocal pause, listening
            pause, listening, watch.due_at = FIRST_PAUSE_SECONDS, True, 0.0
            STREAMS.inc()

        def on_update(update: OrderUpdate) -> None:
            watch.active_at = time.monotonic()
            self.recorder.put(
                BrokerReport(account_id, update.order, update.occurred_at, update.execution, update.rejection)
            )

        while not stop.is_set():
            try:
                self._broker(watch.account, self._pair(watch.account)).listen(on_ready, on_update, stop)
            except (BrokerError, *_NO_KEYS, SQLAlchemyError, TimeoutError) as error:
                log.info("stream_lost", account_id=str(account_id), error=type(error).__name__)
            except Exception as error:
                log.error("stream_lost", account_id=str(account_id), exc_info=error)
            if listening:
                listening = False
                STREAMS.dec()
            stop.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads them, guards nothing # nosec B311
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)

    def _reconcile_due(self, pool: ThreadPoolExecutor) -> bool:
        """The most overdue first, as far as threads are free for their organizations; whether somebody has to wait."""
        now = time.monotonic()
        due = [watch for watch in self._watches.values() if watch.due_at <= now and not watch.is_busy]
        held = by_organization(watch for watch in self._watches.values() if watch.is_busy) if due else Counter()
        begun = 0
        for watch in sorted(due, key=lambda watch: watch.due_at):
            if may_take(watch, held, RECONCILE_THREADS):
                watch.is_busy, watch.due_at = True, now + self.every_seconds
                held[watch.account.organization_id] += 1
                begun += 1
                pool.submit(self._reconcile, watch)
        return begun < len(due)

    def _reconcile(self, watch: Watch) -> None:
        account_id = watch.account.account_id
        try:
            found = self._found(watch)
            for report in found:
                self.recorder.put(report)
            RECONCILIATIONS.labels("different" if found else "same").inc()
            if found:
                watch.active_at = time.monotonic()
        except (BrokerError, *_NO_KEYS) as error:
            if isinstance(error, RateLimited):
                watch.due_at = watch.paused_until = time.monotonic() + (error.retry_after or self.every_seconds)
            if isinstance(error, NoCredential) and watch.account.is_restored:
                watch.due_at = time.monotonic() + NO_KEYS_SECONDS  # there may be many of them
            RECONCILIATIONS.labels("failed").inc()
            log.info("reconcile_failed", account_id=str(account_id), error=type(error).__name__)
        except SQLAlchemyError as error:
            RECONCILIATIONS.labels("failed").inc()
            log.warning("reconcile_failed", account_id=str(account_id), error=type(error).__name__)
        except Exception as error:
            log.error("reconcile_failed", account_id=str(account_id), exc_info=error)
        finally:
            watch.is_busy = False

    def _found(self, watch: Watch) -> list[BrokerReport]:
        """What is new of every order of the account, each in the account at the broker where it was sent."""
        with self.engine.connect() as tx:
            known_orders = store.known_open_orders(tx, watch.account.account_id)
        try:
            found, rest = self._in_current_account(watch, known_orders)
        except (NoCredential, CredentialInvalid):
            if not known_orders:
                raise
            found, rest = [], known_orders
        return found + self._in_former_accounts(watch, rest)

    def _in_current_account(
        self, watch: Watch, known_orders: Sequence[KnownOpenOrder]
    ) -> tuple[list[BrokerReport], list[KnownOpenOrder]]:
        """With the account's credential; and the orders that are in another account at the broker."""
        account_id, pair = watch.account.account_id, self._pair(watch.account)
        broker = self._broker(watch.account, pair)
        try:
            opened = self.credentials.broker_account(account_id, pair, broker)
            here = [known for known in known_orders if known.broker_account in (None, opened)]
            account = AccountReconciliation(account_id, broker, here, watch.missing)
            found, sequence = reconciliation.reconcile_account(self.engine, account)
            if watch.account.is_restored and self._restored:
                self._catch_up(watch, account, found, self._restored)
                found = []
        except CredentialRefused:
            self.on_refused(account_id, pair)
            raise
        if sequence is not None:
            self.recorder.publish_head(account_id, sequence)
        return found, [known for known in known_orders if known not in here]

    def _catch_up(
        self, watch: Watch, account: AccountReconciliation, found: Sequence[BrokerReport], restored: RestoredEpoch
    ) -> None:
        """After a restore: also what happened at the broker since the moment to which the log was restored."""
        with self.engine.connect() as tx:
            remembered = store.last_logged_before(tx, account.account_id, restored.started_at)
        since = watch.adopted_until.get(restored.epoch) or remembered or restored.started_at - FORGOTTEN
        made, reached = account.orders_since(since)
        ends = recorder.record(self.recorder.connections, [*found, *made])
        if reached:
            watch.adopted_until[restored.epoch] = reached
        else:
            with self.engine.begin() as tx:
                store.mark_caught_up(tx, account.account_id, restored.epoch)
            log.info("account_caught_up", account_id=str(account.account_id), orders=len(made))
        for account_id, sequence in ends.items():
            self.recorder.publish_head(account_id, sequence)

    def _in_former_accounts(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> list[BrokerReport]:
        """The same of orders that were sent under a credential which opens another account at the broker."""
        found: list[BrokerReport] = []
        for broker_account in {known.broker_account for known in known_orders}:
            there = [known for known in known_orders if known.broker_account == broker_account]
            try:
                broker = self._former(watch.account, there[0])
            except CredentialPending:
                continue
            if broker is None:
                self._report_out_of_reach(watch, there)
                continue
            found += AccountReconciliation(watch.account.account_id, broker, there, watch.missing).differences(
                others=False
            )
        return found

    def _report_out_of_reach(self, watch: Watch, known_orders: Sequence[KnownOpenOrder]) -> None:
        for known in known_orders:
            if not known.needs_operator:
                self.recorder.put(OutOfReach(watch.account.account_id, known.client_order_id))
        log.info("orders_out_of_reach", account_id=str(watch.account.account_id), orders=len(known_orders))

    def _former(self, account: WatchedAccount, known: KnownOpenOrder) -> Broker | None:
        """The account at the broker where the order is, if a credential opens it still."""
        if known.credential is None or known.broker_account is None:
            return None
        for pair in self.credentials.bound(account.account_id, account.broker, known.credential):
            broker = self._broker(account, pair)
            if self.credentials.broker_account(account.account_id, pair, broker) == known.broker_account:
                return broker
        return None
