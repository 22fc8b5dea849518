"""A broker of which parts cannot be read, and a reconciler that compares a desk's account with it."""

import time
from datetime import datetime
from typing import Any
from uuid import uuid5

from credential_vault import Keyring
from intents.execution import store
from intents.execution.credentials import Credentials, report_accepted, report_refused, report_tested
from intents.execution.model.inputs import OutOfReach
from intents.execution.model.known_orders import WatchedAccount
from intents.execution.reconciler import Reconciler
from intents.execution.watches import Watch
from tip_brokers import Brokers, BrokerSettings, ClientIds, Order

from .conftest import PAPER_SECRET
from .paper_connections import connecting_to
from .showing import Shows


class Account(Shows):
    """At a broker that can be queried by our ids; `raises` instead of an answer."""

    client_ids = ClientIds.UNIQUE

    def __init__(self, name: str, *orders: Order, **others: Any) -> None:
        super().__init__(*orders, **others)
        self.name, self.raises = name, dict[str, Exception]()

    def _called(self, what: str) -> None:
        self.calls[what] += 1
        if what in self.raises:
            raise self.raises[what]

    def account_id(self) -> str:
        self._called("account_id")
        return self.name

    def balance(self) -> Any:
        self._called("balance")
        return super().balance()

    def open_orders(self) -> Any:
        self._called("open_orders")
        return super().open_orders()

    def positions(self) -> Any:
        self._called("positions")
        return super().positions()

    def executions(self, _after: datetime) -> list[Any]:
        self._called("executions")
        return []

    def cancel(self, _broker_order_id: str) -> None:
        self._called("cancel")

    def quotes(self, _symbols: Any) -> list[Any]:
        return []


class Connector:
    def __init__(self, by_key_id: dict[str, Account]) -> None:
        self.by_key_id = by_key_id

    def account(self, secret: Any) -> Account:
        return self.by_key_id[secret["key_id"]]


class Recorded:
    """In place of the recorder: what it was given."""

    def __init__(self) -> None:
        self.put_: list[Any] = []

    def put(self, report: Any) -> None:
        self.put_.append(report)

    def publish_head(self, *_: Any) -> None:
        pass

    @property
    def ends(self) -> list[str]:
        return [report.order.broker_order_id for report in self.put_ if not isinstance(report, OutOfReach)]

    @property
    def lost(self) -> list[str]:
        return [report.client_order_id for report in self.put_ if isinstance(report, OutOfReach)]


class Reading:
    def __init__(self, desk: Any, accounts: dict[str, Account]) -> None:
        deps = desk.deps
        credentials = Credentials(deps.engine, PAPER_SECRET, Keyring.from_text(desk.platform.vault_key))
        self.recorded, brokers = Recorded(), Brokers(BrokerSettings(), connecting_to(Connector(accounts)))
        self.reconciler = Reconciler(deps.engine, brokers, credentials, self.recorded, 5.0, streams=0)  # type: ignore[arg-type]
        self.reconciler.on_accepted = lambda account_id, pair: report_accepted(deps.outbox, account_id, pair)
        self.reconciler.on_refused = lambda account_id, pair: report_refused(deps.outbox, account_id, pair)
        self.reconciler.on_tested = lambda account_id, tested, outcome: report_tested(
            deps.outbox, account_id, tested, outcome
        )
        self.reconciler.__post_init__()
        self.watch = Watch(WatchedAccount(desk.account_id, desk.organization.id, "paper", "paper", False, False))
        self.watch.queries.lost_seconds = 0.0

    def compare(self) -> None:
        self.watch.begin_comparison(time.monotonic(), 5.0)
        self.reconciler._reconcile(self.watch)


def sent_under(desk: Any, name: str, broker_account: str) -> None:
    """The account's orders, under the credential of that name, which opens that account at the broker."""
    reference = f"{uuid5(desk.account_id, name)}:1"
    desk.execute(
        "UPDATE intents.broker_order SET credential = :credential WHERE account_id = :account_id", credential=reference
    )
    with desk.deps.engine.begin() as tx:
        store.credentials.record_login(tx, desk.account_id, reference, broker_account)
