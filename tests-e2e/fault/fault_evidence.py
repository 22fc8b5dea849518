"""Everything the checker compares: what clients were told, what the platform has kept, what the broker has done."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import requests
from fault_journal import Journals
from psycopg2 import extras

Json = dict[str, Any]
TERMINAL = frozenset({"FILLED", "CANCELED", "REJECTED", "DENIED", "EXPIRED", "FAILED"})
OPEN_AT_BROKER = frozenset({"accepted", "new", "partially_filled", "pending_cancel", "pending_replace"})
SHOWN = 4


class Lazily:
    """A detail that is only put into words when it is needed."""

    def __init__(self, words: Callable[[], str]) -> None:
        self._words = words

    def __str__(self) -> str:
        return self._words()


@dataclass(frozen=True)
class Finding:
    """One thing that is not as the contract says."""

    rule: str
    account: str | None
    intent: str | None
    detail: str

    def __str__(self) -> str:
        place = " ".join(
            f"{name} {value}" for name, value in (("account", self.account), ("intent", self.intent)) if value
        )
        return f"{place}: {self.detail}" if place else self.detail


@dataclass
class Findings:
    """`about` gives the same list for a narrower subject."""

    found: list[Finding] = field(default_factory=list)
    account: str | None = None
    intent: str | None = None

    def about(self, account: str | None, intent: str | None = None) -> "Findings":
        return Findings(self.found, account, intent)

    def add(self, rule: str, detail: object = "") -> None:
        self.found.append(Finding(rule, self.account, self.intent, str(detail)))

    def expect(self, holds: bool, rule: str, detail: object = "") -> None:
        if not holds:
            self.add(rule, detail)

    def by_rule(self) -> dict[str, list[Finding]]:
        grouped: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.found:
            grouped[finding.rule].append(finding)
        return dict(sorted(grouped.items(), key=lambda item: -len(item[1])))


@dataclass
class Order:
    """One order in the broker's storage."""

    row: Json

    def __getattr__(self, name: str) -> Any:
        return self.row[name]

    @property
    def filled(self) -> Decimal:
        return sum((Decimal(execution["qty"]) for execution in self.row["executions"]), Decimal(0))

    @property
    def remaining(self) -> Decimal:
        return Decimal(self.row["qty"]) - self.filled

    @property
    def is_open(self) -> bool:
        return self.row["status"] in OPEN_AT_BROKER

    def __str__(self) -> str:
        name = f"order {self.row['order_id'][:8]} of {self.row['client_order_id'][4:12]}"
        return f"{name} {self.row['status']} {self.filled:f} of {self.row['qty']}"


@dataclass
class Entry:
    """One line of an account's log."""

    sequence: int
    event_id: str
    type: str
    payload: Json
    occurred_at: datetime
    written_at: datetime | None
    from_status: str | None
    to_status: str | None

    def __str__(self) -> str:
        said = self.payload
        if self.type == "INTENT_ACTION":
            terms = next(iter((said.get("spec") or {"": {}}).values()))
            what = f"{said['command']['type']} {terms.get('quantity', '')} by {said['actor']['type']}"
        elif self.type == "BROKER_ORDER":
            what = f"filled {said['filled_quantity']} of {said['quantity']}"
            what += "".join(f" {name}={said[name]}" for name in ("reason_code", "outcome") if said.get(name))
        else:
            what = f"{said.get('quantity')} at {said.get('price')} order {str(said.get('broker_order_id'))[:8]}"
        moved = f" {self.from_status}->{self.to_status}" if self.to_status else ""
        return f"{self.sequence}:{self.type}{moved} {what} @{self.occurred_at:%M:%S.%f}"[:160]


@dataclass
class Story:
    """An intent: its row, its part of the log, and its orders at the broker."""

    id: str
    account: str
    row: Json
    entries: list[Entry] = field(default_factory=list)
    orders: list[tuple[Json, list[Order]]] = field(default_factory=list)
    """For each CREATE and REPLACE, in their order: the action, and what the broker has under its client order id."""

    @property
    def actions(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "INTENT_ACTION"]

    @property
    def events(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "BROKER_ORDER"]

    @property
    def trades(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.type == "BROKER_TRADE"]

    @property
    def at_broker(self) -> list[Order]:
        return [order for _action, orders in self.orders for order in orders]

    @property
    def ended(self) -> bool:
        return self.row["status"] in TERMINAL

    def reasons(self) -> set[str]:
        return {str(entry.payload["reason_code"]) for entry in self.events if entry.payload.get("reason_code")}

    def told(self) -> str:
        """The whole story in one line, for whoever has to find out."""
        state = f"{self.row['status']} {self.row['filled_quantity']:f} of {self.row['quantity']:f}"
        state += "".join(f" {name}={self.row[name]}" for name in ("reason_code", "outcome") if self.row.get(name))
        orders = ", ".join(str(order) for order in self.at_broker) or "no order"
        lines = [str(entry) for entry in self.entries]
        shown = lines if len(lines) <= 14 else [*lines[:5], f"... {len(lines) - 12} more ...", *lines[-7:]]
        return f"{self.row['symbol']} {self.row['order_side']} {state} | broker: {orders} | log: {'; '.join(shown)}"


@dataclass
class AccountLog:
    account: str
    deleted: bool
    head: int
    entries: list[Entry]
    stories: dict[str, Story]
    foreign_orders: list[Order] = field(default_factory=list)


@dataclass
class Evidence:
    """`deleted` and `moved` (credentials changed) are accounts, by what the run itself did."""

    base_url: str
    api_key: str
    admin_url: str
    journals: Journals
    orders: dict[str, list[Order]]
    """By client order id."""
    positions: dict[str, dict[str, Decimal]]
    """By account at the broker, then by symbol."""
    left: list[Json]
    """What the line in front of the broker was given that could change an order."""
    duplicates_accepted: bool = False
    deleted: dict[str, Json] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    answers: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    """By account, in the order in which they came."""
    controls: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        for answer in self.journals.answers.read():
            self.answers[answer["account"]].append(answer)
        self.controls = list(self.journals.controls.read())
        for change in self.journals.accounts.read():
            if change["event"] == "account.deleted":
                self.deleted[change["account"]] = change
            elif change["event"].startswith("credential."):
                self.moved.add(change["account"])
        self._session = requests.Session()
        self._session.headers["x-api-key"] = self.api_key

    @contextmanager
    def database(self) -> Iterator[Any]:
        connection = psycopg2.connect(self.admin_url)
        try:
            with connection, connection.cursor(cursor_factory=extras.RealDictCursor) as cursor:
                yield cursor
        finally:
            connection.close()

    def rows(self, statement: str, *values: object) -> list[Json]:
        with self.database() as cursor:
            cursor.execute(statement, values)
            return [dict(row) for row in cursor.fetchall()]

    def get(self, path: str) -> requests.Response:
        return self._session.get(self.base_url + path, timeout=60)

    def pages(self, path: str) -> Iterator[Json]:
        """Everything in a list of the API."""
        cursor = None
        while True:
            answer = self.get(f"{path}?limit=500" + (f"&next_cursor={cursor}" if cursor else ""))
            answer.raise_for_status()
            page = answer.json()
            yield from page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def accounts(self) -> list[str]:
        return [str(row["account_id"]) for row in self.rows("SELECT account_id FROM intents.account_head ORDER BY 1")]

    def log_of(self, account: str) -> AccountLog:
        entries = [_entry(row) for row in self.rows(_LOG, account, account)]
        rows = self.rows("SELECT * FROM intents.intent WHERE account_id = %s", account)
        stories = {str(row["id"]): Story(str(row["id"]), account, row) for row in rows}
        for entry in entries:
            story = stories.get(str(entry.payload.get("intent_id")))
            if story:
                story.entries.append(entry)
                if entry.type == "INTENT_ACTION" and entry.payload["command"]["type"] != "CANCEL":
                    story.orders.append((entry.payload, self.orders.get(client_order_id(entry.payload["id"]), [])))
        [head] = self.rows("SELECT last_sequence FROM intents.account_head WHERE account_id = %s", account)
        return AccountLog(account, account in self.deleted, head["last_sequence"], entries, stories)


def client_order_id(action_id: str) -> str:
    """The function of the action's id that the contract speaks of."""
    return "tip-" + action_id.replace("-", "")


_LOG = """
    SELECT log.sequence, log.event_id, log.type, log.payload, log.occurred_at,
           coalesce(e.created_at, a.created_at) AS written_at,
           coalesce(e.from_status, a.from_status) AS from_status, coalesce(e.to_status, a.to_status) AS to_status
    FROM intents_api.event_log log
    LEFT JOIN intents.account_event e ON e.account_id = log.account_id AND e.sequence = log.sequence
    LEFT JOIN intents.action a ON a.account_id = log.account_id AND a.sequence = log.sequence
    WHERE log.account_id = %s AND log.account_id = %s ORDER BY log.sequence
"""


def _entry(row: Json) -> Entry:
    return Entry(
        row["sequence"], str(row["event_id"]), row["type"], row["payload"], row["occurred_at"], row["written_at"],
        row["from_status"], row["to_status"],
    )  # fmt: skip


def read_ledger(ask: Callable[..., requests.Response]) -> tuple[dict[str, list[Order]], dict[str, dict[str, Decimal]]]:
    orders: dict[str, list[Order]] = defaultdict(list)
    for line in ask("GET", "/ledger", timeout=600).text.splitlines():
        order = Order(json.loads(line))
        orders[order.client_order_id].append(order)
    positions: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for row in ask("GET", "/ledger/positions", timeout=600).json():
        positions[row["account_id"]][row["symbol"]] = Decimal(row["qty"])
    return dict(orders), dict(positions)


def read_requests(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def doubled(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]
