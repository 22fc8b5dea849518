"""Order groups: kill -9 between legs leaves no position without its stop, and does not fill both legs unseen."""

import json
import os
import time
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import requests
from fault_contract import OPEN_AT_BROKER, TERMINAL, client_order_id
from fault_scenario import scenario
from fault_trial import SECONDS, Trial, Violation
from sqlalchemy import Connection, create_engine, text

from tip_testing import group_checker

GROUPS = int(os.environ.get("GROUPS_TO_KILL", "12"))
VICTIMS = ("executor", "executor", "reconciler", "web worker")
QUANTITY = "10"
_ACTIONS = text("SELECT id, intent_id FROM intents.action WHERE account_id = :account_id")


def _entry_with_stop(symbol: str) -> dict[str, Any]:
    legs = {
        "parent": {"Limit": {"quantity": QUANTITY, "limit_price": "10"}},
        "child": {"Stop": {"quantity": QUANTITY, "stop_price": "5", "time_in_force": "GTC"}},
    }
    return {"symbol": symbol, "order_side": "BUY", "spec": {"OneTriggersOther": legs}}


def _submitted(trial: Trial, symbol: str) -> str:
    """Sent until it is answered, under one idempotency key: whoever serves it may die meanwhile."""
    headers = {"x-api-key": trial.on.api_key, "Idempotency-Key": uuid4().hex}
    body, deadline = {"command": {"type": "CREATE", "payload": _entry_with_stop(symbol)}}, time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with suppress(requests.RequestException):
            answered = trial.call("POST", f"/v1/accounts/{trial.account_id}/intents", body, headers)
            if answered.status_code == 201:
                return str(answered.json()["intent_id"])
            trial.expect(answered.status_code in (409, 429, 502, 503, 504), answered.text[:300])
        time.sleep(0.1)
    raise Violation("a group was not answered")


def _quote(trial: Trial, symbol: str, bid: str, ask: str) -> None:
    trial.on.at_broker("PUT", f"/quotes/{symbol}", json={"bid": bid, "ask": ask}).raise_for_status()


def _die(trial: Trial) -> None:
    """Somebody is killed at any moment, and whoever starts again may be killed at a named step."""
    trial.on.kill(trial.on.dice.choice(VICTIMS))
    time.sleep(0.2)
    trial.on.revive(doom=0.6)


def _books(trial: Trial, connection: Connection) -> dict[UUID, list[dict[str, Any]]]:
    rows = connection.execute(_ACTIONS, {"account_id": trial.account_id})
    of = {client_order_id(str(row.id)): row.intent_id for row in rows}
    found: dict[UUID, list[dict[str, Any]]] = {}
    for line in trial.on.at_broker("GET", "/ledger").text.splitlines():
        order = json.loads(line)
        if intent_id := of.get(order["client_order_id"]):
            found.setdefault(intent_id, []).append(order | {"open": order["status"] in OPEN_AT_BROKER})
    return found


def _groups(trial: Trial) -> tuple[list[group_checker.Group], list[str]]:
    """The groups by the database and the broker's ledger, and what is wrong with them at any moment."""
    engine = create_engine(trial.on.admin_url.replace("postgresql://", "postgresql+psycopg2://", 1))
    with engine.connect() as connection:
        groups = group_checker.read_groups(connection, trial.account_id, _books(trial, connection))
    engine.dispose()
    return groups, [fault for group in groups for fault in group_checker.always(group)]


def _all(trial: Trial, role: str, *statuses: str) -> bool:
    groups, faults = _groups(trial)
    trial.expect(not faults, "; ".join(faults))
    return len(groups) == GROUPS and all(group.legs[role].status in statuses for group in groups)


@scenario(alone=True)
def stops_while_processes_die(trial: Trial) -> None:
    """Entries fill, and the market falls to their stops, while executors, reconciler and web are killed."""
    _quote(trial, trial.symbol, bid="9", ask="10")
    for number in range(GROUPS):
        _submitted(trial, trial.symbol)
        if number % 3 == 0:
            _die(trial)
    trial.on.revive_well()
    trial.wait(lambda: _all(trial, "child", "ACCEPTED"), "every entry filled, and its stop at the broker")
    trial.note(f"{GROUPS} entries are filled and covered")
    _quote(trial, trial.symbol, bid="4", ask="4.5")
    for _ in range(4):
        _die(trial)
    trial.on.revive_well()
    trial.wait(lambda: _all(trial, "child", *TERMINAL), "every stop has ended")
    _expect_closed(trial)


def _expect_closed(trial: Trial) -> None:
    """In the end: each group closed what it opened, once, and the books agree."""
    groups, _ = _groups(trial)
    faults = [fault for group in groups for fault in group_checker.at_rest(group)]
    trial.expect(not faults, "; ".join(faults))
    closed = [group for group in groups if group.closed == group.base]
    trial.expect(len(closed) == len(groups), f"{len(groups) - len(closed)} groups closed another quantity")
    trial.note(f"{len(closed)} groups closed what they opened; killed: {trial.on.kills}")
