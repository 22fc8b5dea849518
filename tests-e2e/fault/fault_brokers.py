"""The brokers beside the paper broker: a FIX acceptor behind our gateways, a crypto exchange; what both have done."""

import json
import random
import signal
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fault_processes import Child
from fault_records import Json, Order

from tip_broker_fix.gateway.credentials import secret_key
from tip_testing.fix_acceptor import FixLine, prepare
from tip_testing.fix_acceptor.gateway import ACCOUNT_KEY, gateway_environment
from tip_testing.fix_acceptor.market import OPEN, PRICE, Chain, Market
from tip_testing.loopback_exchange import KEY, SECRET
from tip_testing.ports import reserved_port

FIX_KINDS = {"1": "market", "2": "limit", "3": "stop", "4": "stop_limit"}
FIX_SIDES = {"1": "buy", "2": "sell"}
CCXT_KINDS = {"MARKET": "market", "LIMIT": "limit", "STOP_LOSS": "stop", "STOP_LOSS_LIMIT": "stop_limit"}
LOST_FIX_MESSAGES = 0.002
GATEWAYS = 2
Ledger = tuple[dict[str, list[Order]], dict[str, dict[str, Decimal]]]


@dataclass
class Brokers:
    """`accounts` at each of the two."""

    directory: Path
    accounts: int
    seed: int
    acceptor_port: int = field(default_factory=reserved_port)
    gateway_ports: list[int] = field(default_factory=lambda: [reserved_port() for _ in range(GATEWAYS)])
    exchange_port: int = field(default_factory=reserved_port)

    def __post_init__(self) -> None:
        self.line, self._dice = FixLine(self.acceptor_port), random.Random(self.seed)
        self._exchange: Child | None = None

    @property
    def environment(self) -> dict[str, str]:
        """For the platform."""
        gateways = ",".join(f"http://127.0.0.1:{port}" for port in self.gateway_ports)
        return {"FIX_PAPER_URL": gateways, "CCXT_ADDRESSES": f"binance=http://127.0.0.1:{self.exchange_port}"}

    def children(self, admin_url: str) -> Iterator[Child]:
        folder = self.directory / "acceptor"
        folder.mkdir()
        yield self._child("fix-acceptor", "tip_testing.fix_acceptor", str(folder), str(self.acceptor_port))
        database_url = prepare(admin_url)
        for port in self.gateway_ports:
            own = gateway_environment(database_url, self.line.port, FIX_GATEWAY_PORT=str(port))
            yield self._child("fix-gateway", "tip_broker_fix.gateway", **own)
        more = (str(self._ledger_file), str(self.exchange_port), str(self.accounts))
        self._exchange = self._child("exchange", "tip_testing.loopback_exchange", *more)
        yield self._exchange

    def _child(self, kind: str, *module: str, **environment: str) -> Child:
        return Child(kind, ["-m", *module], environment, self.directory / f"{kind}.log")

    @property
    def _ledger_file(self) -> Path:
        return self.directory / "exchange.ndjson"

    def secrets(self) -> Iterator[tuple[str, Json]]:
        """Of each account: the broker's name and the credential."""
        for number in range(self.accounts):
            name = f"ACC{number}"
            key = secret_key(ACCOUNT_KEY, name)
            yield "fix", {"account": name, "secret_key": key, "destination": "XNAS"}
            yield "ccxt:binance", {"apiKey": f"{KEY}-{number}" if number else KEY, "secret": SECRET}

    def disturb(self, is_on: bool) -> None:
        """Now and then the FIX line loses a message, and itself."""
        self.line.fault = lambda _number, _frame: is_on and self._dice.random() < LOST_FIX_MESSAGES

    def ledger(self) -> Ledger:
        """What both have done, by their own records. The exchange ends."""
        assert self._exchange is not None and self._exchange.process is not None
        self._exchange.process.end(signal.SIGTERM)
        orders: dict[str, list[Order]] = defaultdict(list)
        positions: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
        for row in (*fix_orders(self.directory / "acceptor" / "journal"), *exchange_orders(self._ledger_file)):
            order = Order(row)
            orders[order.client_order_id].append(order)
            positions[order.account_id][order.symbol] += order.filled if order.side == "buy" else -order.filled
        return dict(orders), {account: dict(held) for account, held in positions.items()}


def exchange_orders(file: Path) -> Iterator[Json]:
    for line in file.read_text().splitlines():
        row = json.loads(line)
        symbol, filled = f"{row['coin']}/USDT", Decimal(row["filled"])
        fills = [{"id": "none", "qty": row["filled"], "price": str(PRICE)}] if filled else []
        status = ("partially_filled" if filled else "new") if row["status"] == "open" else row["status"]
        yield {
            "order_id": f"{row['id']}@{symbol}", "client_order_id": row["client_id"], "account_id": str(row["account"]),
            "symbol": symbol, "side": row["side"].lower(), "kind": CCXT_KINDS[row["kind"]],
            "qty": row["quantity"], "limit_price": row["limit_price"], "stop_price": row["stop_price"],
            "status": status, "executions": fills, "sequence": row["id"], "posts": 1,
            "created_at": datetime.fromtimestamp(row["created"], UTC).isoformat(),
        }  # fmt: skip


def fix_orders(journal: Path) -> Iterator[Json]:
    """The acceptor's journal holds every message that it has taken in, and its market knows no chance."""
    market, first, posts = Market(), dict[str, tuple[int, dict[int, str]]](), defaultdict[str, int](int)
    for number, line in enumerate(journal.read_text().splitlines() if journal.exists() else ()):
        pairs = (pair.partition("=") for pair in line.split("\x01") if pair)
        message = {int(tag): value for tag, _, value in pairs}
        market.answer(message)
        if message[35] in ("D", "G"):
            first.setdefault(message[11], (number, message))
            posts[message[11]] += 1
    for chain in market.chains:
        for place, name in enumerate(chain.names):
            number, message = first[name]
            before = chain.replaced_at[chain.names[place - 1]] if place else Decimal(0)
            yield {
                **_terms(message), "order_id": name, "client_order_id": name, "account_id": chain.account,
                "symbol": chain.symbol, "side": FIX_SIDES[chain.side], "qty": f"{Decimal(message[38]) - before:f}",
                "status": _status(chain, name), "executions": list(_executions(chain, name)), "sequence": number,
                "posts": posts[name],
            }  # fmt: skip


def _terms(message: dict[int, str]) -> dict[str, Any]:
    sent = datetime.strptime(message[52] + "+0000", "%Y%m%d-%H:%M:%S.%f%z")
    return {
        "kind": FIX_KINDS[message[40]], "limit_price": message.get(44), "stop_price": message.get(99),
        "created_at": sent.isoformat(),
    }  # fmt: skip


def _status(chain: Chain, name: str) -> str:
    if name != chain.name:
        return "replaced"
    if chain.status in OPEN:
        return "partially_filled" if chain.filled else "new"
    return "ended"


def _executions(chain: Chain, name: str) -> Iterator[Json]:
    for filled_under, execution, quantity in chain.trades:
        if filled_under == name:
            yield {"id": f"{chain.order_id}.{execution}", "qty": f"{quantity:f}", "price": str(PRICE)}
