"""All orders of an account compared with their broker: those in today's account there, and those in former ones."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Engine

from chassis import db, logs
from intents.execution import recorder, store
from intents.execution.account_reading import read_account
from intents.execution.account_reads import AccountReads
from intents.execution.credentials import CredentialInvalid, Credentials, KeyPair, NoCredential
from intents.execution.former_accounts import FormerAccounts
from intents.execution.model.inputs import BrokerReport, OutOfReach
from intents.execution.model.known_orders import KnownOpenOrder, ReadingStart, RestoredEpoch, WatchedAccount
from intents.execution.order_queries import LOST
from intents.execution.quotes import read_quotes
from intents.execution.reconciliation import AccountReconciliation
from intents.execution.recorder import Recorder
from intents.execution.watches import Watch
from tip_brokers import Broker, BrokerError, Brokers, CredentialRefused, RateLimited

log = logs.get(__name__)

FORGOTTEN = timedelta(days=30)  # how far back orders are adopted of an account of which a restored log knows nothing


@dataclass(frozen=True)
class Comparison:
    engine: Engine
    brokers: Brokers
    credentials: Credentials
    recorder: Recorder
    reads: AccountReads
    quote_seconds: float
    on_refused: Callable[[UUID, KeyPair], None]
    """Called for a key pair that a broker refuses."""

    def pair_of(self, account: WatchedAccount) -> KeyPair:
        return self.credentials.pair(account.account_id, account.broker)

    def broker_of(self, account: WatchedAccount, pair: KeyPair) -> Broker:
        return self.brokers.account(account.broker, account.environment, pair.secret)

    def differences(self, watch: Watch, restored: RestoredEpoch | None) -> Iterator[BrokerReport]:
        """What is new of every order, each in the account at the broker where it was sent: none hides another's."""
        with db.reading(self.engine) as tx:
            start = store.begin_reading(tx, watch.account.account_id)
        watch.queries.forget_all_but(start.orders)
        rest, failures, is_opened, was_read = start.orders, list[BrokerError](), True, False
        try:
            account, opened = self._opened(watch, start)
        except (NoCredential, CredentialInvalid):
            if not start.orders:
                raise
            is_opened = False
        else:
            rest = [known for known in start.orders if known not in account.known]
            was_read, failures = yield from self._in_current_account(watch, account, start, opened, restored)
        former = FormerAccounts(self.credentials, self.broker_of, self.on_refused, self.recorder.put, is_opened)
        yield from former.differences(watch, [known for known in rest if not known.in_flight])
        self._report_lost(watch, start.orders if was_read else rest)
        if failures:
            raise next((failure for failure in failures if isinstance(failure, RateLimited)), failures[0])

    def _report_lost(self, watch: Watch, orders: Iterable[KnownOpenOrder]) -> None:
        """Not while the broker could not be queried about them."""
        lost = set(watch.queries.lost())
        for known in orders:
            if known.client_order_id in lost and not known.needs_operator:
                self.recorder.put(OutOfReach(watch.account.account_id, known.client_order_id, LOST))
                lost.remove(known.client_order_id)

    def _opened(self, watch: Watch, start: ReadingStart) -> tuple[AccountReconciliation, tuple[KeyPair, str]]:
        """The account at the broker that the account's credential opens."""
        account_id, pair = watch.account.account_id, self.pair_of(watch.account)
        broker = self.broker_of(watch.account, pair)
        try:
            opened = self.credentials.broker_account(account_id, pair, broker)
        except CredentialRefused:
            self.on_refused(account_id, pair)
            raise
        watch.end_stream_of_other(pair.reference)
        here = [known for known in start.orders if known.broker_account in (None, opened)]
        return AccountReconciliation(account_id, broker, here, watch.queries), (pair, opened)

    def _in_current_account(
        self,
        watch: Watch,
        account: AccountReconciliation,
        start: ReadingStart,
        opened: tuple[KeyPair, str],
        restored: RestoredEpoch | None,
    ) -> Generator[BrokerReport, None, tuple[bool, list[BrokerError]]]:
        """What is new there; in the end, whether its orders were read, and what kept the rest from being read."""
        pair, broker_account = opened
        found, was_read = list[BrokerReport](), False
        try:
            found, was_read = self._read(watch, account, start, (pair.reference, broker_account)), True
            if watch.account.is_restored and restored and not account.failures:
                self._catch_up(watch, account, found, restored)
                found = []
        except BrokerError as error:
            account.failures.append(error)
        yield from found
        if any(isinstance(failure, CredentialRefused) for failure in account.failures):
            self.on_refused(account.account_id, pair)
        return was_read, account.failures

    def _read(
        self, watch: Watch, account: AccountReconciliation, start: ReadingStart, opened: tuple[str, str]
    ) -> list[BrokerReport]:
        """The differences to record. What the account holds is saved: of which it is, and with which credential."""
        can = self.brokers.capabilities(watch.account.broker)
        if can is not None and can.quotes:
            read_quotes(self.engine, watch.account, account.broker, self.quote_seconds)
        differences, holdings = read_account(account, start)
        sequence = self.reads.save(account.account_id, *opened, holdings) if holdings else None
        if sequence is not None:
            self.recorder.publish_head(account.account_id, sequence)
        return differences

    def _catch_up(
        self, watch: Watch, account: AccountReconciliation, found: Sequence[BrokerReport], restored: RestoredEpoch
    ) -> None:
        """After a restore: also what happened at the broker since the moment to which the log was restored."""
        with db.reading(self.engine) as tx:
            remembered = store.last_logged_before(tx, account.account_id, restored.started_at)
        since = watch.adopted_until.get(restored.epoch) or remembered or restored.started_at - FORGOTTEN
        made, reached = account.orders_since(since)
        recorded = recorder.record(self.recorder.connections, [*found, *made])
        recorder.announce(recorded, len(found) + len(made))
        if reached:
            watch.adopted_until[restored.epoch] = reached
        else:
            with self.engine.begin() as tx:
                store.mark_caught_up(tx, account.account_id, restored.epoch)
            log.info("account_caught_up", account_id=str(account.account_id), orders=len(made))
        for account_id, sequence in recorded.heads.items():
            self.recorder.publish_head(account_id, sequence)
