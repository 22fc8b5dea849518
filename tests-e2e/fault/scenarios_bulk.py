"""A kill switch and a deletion that cancel what is open, while the processes that carry them out are killed."""

import json
import os
import time
from collections import Counter
from contextlib import closing
from typing import Any

import psycopg2
from fault_contract import OPEN_AT_BROKER, client_order_id
from fault_proxy import Hold
from fault_scenario import scenario
from fault_trial import Trial

OPEN = "SIM.OPEN"
ORDERS = int(os.environ.get("HALT_ORDERS", "200"))
"""For the kills to fall among them; the full size is `HALT_ORDERS=1000 make chaos SCENARIO=…`."""
BATCH = 20
KILLS = 10
SECONDS = 480.0
CONSUMER_SECONDS = 5.0
"""In which accounts-consumer looks several times for what can be deleted."""


@scenario(alone=True)
def halt_cancels_all_while_executors_die(trial: Trial) -> None:
    """Many open orders, HALTED with cancel_open, ten kills of executors meanwhile: none open, none canceled twice."""
    _open_orders(trial, ORDERS)
    path = f"/v1/controls/accounts/{trial.account_id}"
    halted = trial.call("PUT", path, {"trading_state": "HALTED", "cancel_open": True}).json()
    began = time.monotonic()
    operation, kills = _killing(trial, f"/v1/accounts/{trial.account_id}/bulk-operations/{halted['bulk_operation_id']}")
    trial.note(f"{operation['done']} of {operation['total']} in {time.monotonic() - began:.0f} s, {kills} kills")
    trial.expect(kills == KILLS, f"killed {kills} times only")
    trial.expect((operation["total"], operation["done"]) == (ORDERS, ORDERS), f"{operation}")
    _expect_each_canceled_once(trial, ORDERS)


def _killing(trial: Trial, progress: str) -> tuple[dict[str, Any], int]:
    """The completed operation, and how many executors were killed until half of it was done."""
    ends, kills = time.monotonic() + SECONDS, 0
    while (operation := _read(trial, progress)) is None or operation["status"] != "COMPLETED":
        trial.expect(time.monotonic() < ends, f"not completed: {operation}")
        if operation and kills < KILLS and operation["done"] >= kills * ORDERS // (2 * KILLS):
            kills += 1
            trial.on.kill("executor")
            if kills % 4 == 0:
                trial.on.kill("scheduler")
            trial.on.revive(doom=0.0)
        time.sleep(0.1)
    return operation, kills


@scenario()
def account_is_deleted_after_its_orders(trial: Trial) -> None:
    """An account with an open GTC order is not deleted; with cancel_open it is, once the broker has canceled."""
    intent_id = trial.create(OPEN, "1", limit="1.00")
    trial.wait_for_status(intent_id, "ACCEPTED")
    names = {order["client_order_id"] for order in trial.orders(intent_id)}
    account = f"/v1/accounts/{trial.account_id}"
    refused = trial.call("DELETE", account)
    trial.expect((refused.status_code, refused.json()["code"]) == (409, "open_intents"), f"{refused.text}")
    accepted = trial.call("DELETE", f"{account}?cancel_open=true")
    trial.expect(accepted.status_code == 202, f"answered {accepted.status_code}: {accepted.text}")
    denied = trial.submit("CREATE", {"symbol": OPEN, "order_side": "BUY", "spec": {"Market": {"quantity": "1"}}})
    trial.expect(denied.status_code in (404, 422), f"a submit meanwhile was answered {denied.status_code}")
    trial.wait(lambda: _read(trial, account) is None, "the account is gone")
    left = [row for row in _ledger(trial) if row["client_order_id"] in names and row["status"] in OPEN_AT_BROKER]
    trial.expect(not left, f"still open at the broker: {left}")


@scenario()
def order_surfaces_while_its_account_is_deleted(trial: Trial) -> None:
    """An order that was given up surfaces while its account is deleted: reported and canceled, then it is gone."""
    hold = Hold(cut=True)
    sent = trial.on_line("POST", hold)
    intent_id = trial.create(OPEN, "2")
    sent.wait_for_hits()
    account = f"/v1/accounts/{trial.account_id}"
    trial.call("DELETE", f"{account}?cancel_open=true").raise_for_status()
    trial.wait_for_status(intent_id, "CANCELED")
    names = {client_order_id(action["id"]) for action in trial.actions(intent_id)}
    time.sleep(CONSUMER_SECONDS)
    trial.expect(_read(trial, account), "the account was deleted although the order could still surface")
    hold.release()
    trial.wait(lambda: _read(trial, account) is None, "the account is gone")
    orders = [row["status"] for row in _ledger(trial) if row["client_order_id"] in names]
    trial.expect(orders == ["canceled"], f"at the broker: {orders}")
    trial.expect("ORDER_AFTER_END" in _logged_reasons(trial), f"reported: {_logged_reasons(trial)}")


def _logged_reasons(trial: Trial) -> list[str]:
    """From the log itself: of an account that is gone nobody can read it."""
    query = "SELECT payload ->> 'reason_code' FROM intents.account_event WHERE account_id = %s"
    with closing(psycopg2.connect(trial.on.admin_url)) as connection, connection.cursor() as cursor:
        cursor.execute(query, (str(trial.account_id),))
        return [row[0] for row in cursor.fetchall() if row[0]]


def _open_orders(trial: Trial, count: int) -> None:
    payload = {"symbol": OPEN, "order_side": "BUY", "spec": {"Limit": _TERMS}}
    commands = [{"type": "CREATE", "payload": payload}] * BATCH
    for _ in range(count // BATCH):
        path = f"/v1/accounts/{trial.account_id}/intents/batch"
        results = trial.call("POST", path, {"commands": commands}).json()["results"]
        trial.expect(all(result["status"] == 201 for result in results), f"{results[0]}")
    trial.wait(lambda: _accepted(trial) == count, f"{count} orders are open at the broker", SECONDS)


_TERMS = {"quantity": "1", "limit_price": "1.00", "time_in_force": "GTC"}


def _accepted(trial: Trial) -> int:
    stats = trial.call("GET", f"/v1/accounts/{trial.account_id}/intents/stats").json()
    return int(stats["by_status"].get("ACCEPTED", 0))


def _expect_each_canceled_once(trial: Trial, count: int) -> None:
    actions = _actions(trial)
    names = {client_order_id(action["id"]) for action in actions if action["command"]["type"] == "CREATE"}
    orders = [row for row in _ledger(trial) if row["client_order_id"] in names]
    statuses = Counter(row["status"] for row in orders)
    trial.expect(statuses == {"canceled": count}, f"at the broker: {dict(statuses)}")
    cancels = Counter(action["intent_id"] for action in actions if action["command"]["type"] == "CANCEL")
    trial.expect(set(cancels.values()) == {1} and len(cancels) == count, f"CANCELs: {Counter(cancels.values())}")
    deletions = [
        request for request in list(trial.proxy.requests) if request.method == "DELETE" and trial.mine(request)
    ]
    per_order = Counter(request.path for request in deletions)
    trial.note(f"cancel requests per order: {dict(Counter(per_order.values()))}")
    trial.expect(set(per_order.values()) == {1} and len(per_order) == count, "an order was canceled twice, or never")


def _actions(trial: Trial) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = trial.call("GET", f"/v1/accounts/{trial.account_id}/intents?limit=500{cursor}").json()
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&next_cursor={page['next_cursor']}"


def _ledger(trial: Trial) -> list[dict[str, Any]]:
    answered = trial.on.at_broker("GET", "/ledger")
    answered.raise_for_status()
    return [json.loads(line) for line in answered.text.splitlines()]


def _read(trial: Trial, path: str) -> dict[str, Any] | None:
    """None while, or once, there is no such thing."""
    answered = trial.call("GET", path)
    if answered.status_code == 404:
        return None
    answered.raise_for_status()
    found: dict[str, Any] = answered.json()
    return found
