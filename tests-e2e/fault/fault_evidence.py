"""Everything the checker compares: what clients were answered, what the platform has kept, what the broker has done."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg2
import requests
from fault_contract import client_order_id
from fault_journal import Journals
from fault_records import AccountLog, Entry, Json, Order, Story
from psycopg2 import extras


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
                if change["code"] != "open_intents":  # with those it stays
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


def read_ledger(read: Callable[..., requests.Response]) -> tuple[dict[str, list[Order]], dict[str, dict[str, Decimal]]]:
    orders: dict[str, list[Order]] = defaultdict(list)
    for line in read("GET", "/ledger", timeout=600).text.splitlines():
        order = Order(json.loads(line))
        orders[order.client_order_id].append(order)
    positions: dict[str, dict[str, Decimal]] = defaultdict(dict)
    for row in read("GET", "/ledger/positions", timeout=600).json():
        positions[row["account_id"]][row["symbol"]] = Decimal(row["qty"])
    return dict(orders), dict(positions)


def read_requests(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def doubled(values: Iterable[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1]
