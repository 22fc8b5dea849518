"""The judge: the clients' log, the action table, the event log and the broker's own storage must tell one story."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg2
import requests
from psycopg2 import extras

NEVER_SENT = ("CANCELED_BEFORE_SENT", "STALE_ORDER", "TRADING_HALTED")


@dataclass
class Verdict:
    facts: dict[str, Any] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def expect(self, holds: bool, fault: str, about: object) -> None:
        if not holds:
            self.faults[fault].append(str(about))

    @property
    def good(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        lines = [f"  {name}: {value}" for name, value in self.facts.items()]
        lines += [f"  FAULT {name}: {len(found)} (e.g. {found[:3]})" for name, found in self.faults.items()]
        return "\n".join([*lines, "  verdict: " + ("nothing lost, doubled or out of order" if self.good else "FAULTY")])


def judge(admin_url: str, broker_url: str, client_log: Path) -> Verdict:
    verdict = Verdict()
    promised = [json.loads(line) for line in client_log.read_text().splitlines()]
    ledger = [json.loads(line) for line in requests.get(f"{broker_url}/sim/ledger", timeout=300).text.splitlines()]
    connection = psycopg2.connect(admin_url)
    extras.register_uuid(conn_or_curs=connection)
    with connection, connection.cursor(cursor_factory=extras.RealDictCursor) as cursor:
        tables = {
            name: _rows(cursor, f"SELECT * FROM intents.{name}")
            for name in ("action", "intent", "broker_event", "account_head")
        }
    connection.close()
    _nothing_lost(verdict, promised, tables["action"])
    _nothing_doubled(verdict, tables["action"], tables["intent"], ledger)
    _in_order(verdict, tables["action"], ledger)
    _without_gaps(verdict, tables)
    _agreed(verdict, tables, ledger)
    return verdict


def _rows(cursor: Any, statement: str) -> list[dict[str, Any]]:
    cursor.execute(statement)
    found: list[dict[str, Any]] = cursor.fetchall()
    return found


def client_order_id(action_id: UUID) -> str:
    return f"tip-{action_id.hex}"


def _nothing_lost(verdict: Verdict, promised: list[dict[str, str]], actions: list[dict[str, Any]]) -> None:
    known = {str(action["id"]) for action in actions}
    answered = Counter(one["id"] for one in promised)
    for action_id in answered:
        verdict.expect(action_id in known, "answered, but not in the log", action_id)
    for action_id in known - answered.keys():
        verdict.expect(False, "in the log, but never answered", action_id)
    verdict.expect(len(actions) == len(known), "the same action twice", len(actions) - len(known))
    verdict.facts["commands answered"] = len(answered)
    verdict.facts["intents"] = len({one["intent_id"] for one in promised})


def _nothing_doubled(
    verdict: Verdict, actions: list[dict[str, Any]], intents: list[dict[str, Any]], ledger: list[dict[str, Any]]
) -> None:
    orders = Counter(one["client_order_id"] for one in ledger)
    ours = {client_order_id(action["id"]) for action in actions}
    for name, count in orders.items():
        verdict.expect(count == 1, "more than one order for one command", name)
        verdict.expect(name in ours, "an order nobody asked for", name)
    by_id = {intent["id"]: intent for intent in intents}
    for action in actions:
        intent = by_id[action["intent_id"]]
        if action["type"] == "CREATE" and intent["reason_code"] not in NEVER_SENT:
            sent = client_order_id(action["id"]) in orders
            verdict.expect(sent or intent["status"] == "REJECTED", "accepted, but no order", action["id"])
    for intent in intents:
        verdict.expect(intent["open_actions"] == 0, "still not settled", (intent["id"], intent["status"]))
        verdict.expect(intent["outcome"] is None, "still unknown", intent["id"])
    verdict.facts["broker orders"] = len(ledger)
    verdict.facts["sent more than once"] = sum(one["posts"] > 1 for one in ledger)
    verdict.facts["statuses"] = dict(Counter(intent["status"] for intent in intents))


def _in_order(verdict: Verdict, actions: list[dict[str, Any]], ledger: list[dict[str, Any]]) -> None:
    """Orders of one intent were made at the broker in the order of its commands."""
    place = {one["client_order_id"]: number for number, one in enumerate(ledger)}
    by_intent: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for action in sorted(actions, key=lambda one: one["sequence"]):
        by_intent[action["intent_id"]].append(action)
    for intent_id, commands in by_intent.items():
        verdict.expect(commands[0]["type"] == "CREATE", "a command before its CREATE", intent_id)
        places = [place[name] for one in commands if (name := client_order_id(one["id"])) in place]
        verdict.expect(places == sorted(places), "orders out of order", intent_id)


def _without_gaps(verdict: Verdict, tables: dict[str, list[dict[str, Any]]]) -> None:
    sequences: dict[UUID, list[int]] = defaultdict(list)
    for name in ("action", "broker_event"):
        for row in tables[name]:
            sequences[row["account_id"]].append(row["sequence"])
    for head in tables["account_head"]:
        found = sorted(sequences[head["account_id"]])
        verdict.expect(found == list(range(1, head["last_sequence"] + 1)), "a gap in the sequence", head["account_id"])
    verdict.facts["events"] = len(tables["broker_event"])


def _agreed(verdict: Verdict, tables: dict[str, list[dict[str, Any]]], ledger: list[dict[str, Any]]) -> None:
    """What is filled according to us is what is filled according to the broker, trade by trade."""
    filled = {one["client_order_id"]: Decimal(one["filled_qty"]) for one in ledger}
    open_at_broker = {
        one["client_order_id"] for one in ledger if one["status"] in ("new", "accepted", "partially_filled")
    }
    expected: dict[UUID, Decimal] = defaultdict(Decimal)
    working: set[UUID] = set()
    for action in tables["action"]:
        expected[action["intent_id"]] += filled.get(client_order_id(action["id"]), Decimal(0))
        if client_order_id(action["id"]) in open_at_broker:
            working.add(action["intent_id"])
    traded: dict[UUID, Decimal] = defaultdict(Decimal)
    for event in tables["broker_event"]:
        if event["type"] == "BROKER_TRADE":
            traded[event["intent_id"]] += Decimal(event["payload"]["quantity"])
    for intent in tables["intent"]:
        verdict.expect(intent["filled_quantity"] == expected[intent["id"]], "other fills than the broker", intent["id"])
        verdict.expect(intent["filled_quantity"] == traded[intent["id"]], "other fills than the trades", intent["id"])
        ended = intent["status"] in ("FILLED", "CANCELED", "REJECTED", "EXPIRED", "DENIED", "FAILED")
        verdict.expect(ended != (intent["id"] in working), "open here or there only", (intent["id"], intent["status"]))
