"""Halts and cancels that overtake an order, reason codes that must be true, and ids that a broker uses twice."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace as changed
from typing import Any

import psycopg2
from fault_contract import client_order_id
from fault_processes import Child
from fault_proxy import Hold
from fault_scenario import scenario
from fault_trial import SetUpFailed, Trial

OPEN = "SIM.OPEN"
LONG_LEASE = {"EXECUTOR_LEASE_SECONDS": "20"}
PAUSE_SECONDS = 3.0
"""Less than that lease, so that the lease is not what stops the order; half again what HALT promises."""


@contextmanager
def _one_executor(trial: Trial, **settings: str) -> Iterator[Child]:
    """In place of all others, not yet started. The others are started again by whoever runs the scenario."""
    executors = trial.on.of("executor")
    for child in executors:
        child.kill()
    made = changed(
        executors[0],
        environment={**executors[0].environment, **settings},
        log=trial.on.directory / "executor-of-scenario.log",
        process=None,
    )
    try:
        yield made
    finally:
        made.kill()


@contextmanager
def _claim_unfinished(trial: Trial, intent_id: str) -> Iterator[Any]:
    """Whoever claims the intent waits inside its claim, whose view of the controls is as old as its beginning."""
    (action,) = trial.actions(intent_id)
    with closing(psycopg2.connect(trial.on.admin_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO intents.broker_order (account_id, client_order_id, status) VALUES (%s, %s, 'STARTED')",
            (str(trial.account_id), client_order_id(action["id"])),
        )
        yield
        connection.rollback()


def _claims_waiting(trial: Trial) -> int:
    with closing(psycopg2.connect(trial.on.admin_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'tip_intents'"
        )
        (count,) = cursor.fetchone() or (0,)
        return int(count)


@scenario(alone=True)
def halt_while_frozen(trial: Trial) -> None:
    """An executor freezes between its claim and its send, HALT is answered, 3 s later it goes on: nothing leaves."""
    with _one_executor(trial, **LONG_LEASE) as executor:
        intent_id = trial.create(OPEN, "2")
        with _claim_unfinished(trial, intent_id):
            executor.start()
            try:
                trial.wait(lambda: _claims_waiting(trial), "the executor waits inside its claim")
            except AssertionError as error:
                raise SetUpFailed(str(error)) from error
            trial.on.freezer.freeze("executor", [executor.pid], None)
        trial.halt()
        halted_at = time.time()
        time.sleep(PAUSE_SECONDS)
        trial.on.freezer.thaw([executor.pid])
        trial.wait(lambda: trial.status(intent_id) != "PENDING", "the executor has dealt with it")
        for sent in trial.posts(trial.key_id):
            trial.expect(False, f"a POST left {sent.received_at - halted_at:.1f} s after HALT was answered")
        trial.wait_for_status(intent_id, "DENIED")
        trial.expect(trial.state(intent_id)["reason_code"] == "TRADING_HALTED", f"it is {trial.state(intent_id)}")


@scenario(alone=True)
def control_while_stopped(trial: Trial) -> None:
    """An executor stops after it has decided to send, the symbol is disabled, 3 s later it goes on: nothing leaves."""
    with _one_executor(trial, TIP_STOP_AT="executor.before_send", **LONG_LEASE) as executor:
        executor.start()
        intent_id = trial.create(OPEN, "2")
        try:
            trial.wait(lambda: executor.stopped, "the executor is about to send")
        except AssertionError as error:
            raise SetUpFailed(str(error)) from error
        trial.on.freezer.freeze("executor", [executor.pid], None)
        trial.disable_symbol(OPEN)
        time.sleep(PAUSE_SECONDS)
        trial.on.freezer.thaw([executor.pid])
        trial.wait_for_status(intent_id, "DENIED")
        trial.expect(not trial.posts(trial.key_id), "a POST left although its symbol was disabled")
        denial = trial.events(intent_id)[-1]
        trial.expect(denial["reason_code"] == "SYMBOL_DISABLED", f"its event says {denial}")
        trial.expect([reason["code"] for reason in denial["reasons"]] == ["SYMBOL_DISABLED"], f"reasons of {denial}")


def _cancel_overtakes_replace(trial: Trial, symbol: str) -> str:
    """A REPLACE and a CANCEL come while the CREATE is on its way: the REPLACE is not sent, the order exists."""
    hold = Hold()
    sent = trial.on_line("POST", hold, count=1)
    intent_id = trial.create(symbol, "2")
    sent.wait_for_hits()
    trial.replace(intent_id, "3")
    trial.cancel(intent_id)
    hold.release()
    return intent_id


def _expect_true_reason(trial: Trial, intent_id: str) -> None:
    state = trial.state(intent_id)
    trial.note(f"{state['status']} with reason_code {state['reason_code']}")
    trial.expect(trial.orders(intent_id), "there is no order at the broker")
    trial.expect(state["reason_code"] != "CANCELED_BEFORE_SENT", f"its order was sent, and the intent says {state}")
    ends = [event for event in trial.events(intent_id) if event["status"] == state["status"]]
    reasons = {event.get("reason_code") for event in ends}
    trial.expect("CANCELED_BEFORE_SENT" not in reasons, f"its order was sent, and its events say {reasons}")


@scenario()
def reason_of_canceled(trial: Trial) -> None:
    """A REPLACE is not sent because a CANCEL came: the order that is then canceled does not say 'before sent'."""
    intent_id = _cancel_overtakes_replace(trial, OPEN)
    trial.wait_for_status(intent_id, "CANCELED")
    _expect_true_reason(trial, intent_id)


@scenario()
def reason_of_filled(trial: Trial) -> None:
    """The same with an order that fills before it can be canceled: FILLED does not say 'canceled before sent'."""
    intent_id = _cancel_overtakes_replace(trial, "SIM.LATE_FILL")
    trial.wait_for_status(intent_id, "FILLED")
    _expect_true_reason(trial, intent_id)


@scenario()
def reused_execution_id(trial: Trial) -> None:
    """Two orders have an execution of the same id: both fills count, and nothing fails to be recorded."""
    intents = [trial.create("SIM.REUSED_EXECUTION", "1") for _ in range(2)]
    for intent_id in intents:
        trial.wait_for_status(intent_id, "FILLED")
        trial.expect_fills_agree(intent_id)
        trial.expect(trial.filled(intent_id) == 1, f"filled {trial.filled(intent_id)} of 1")
    failures = [line for line in _logged(trial, "record_failed") if str(trial.account_id) in line]
    trial.expect(not failures, f"record_failed {len(failures)} times: {[line[:200] for line in failures[:1]]}")


def _logged(trial: Trial, event: str) -> list[str]:
    files = [child.log for kind in ("executor", "reconciler") for child in trial.on.of(kind)]
    return [line for file in files for line in file.read_text().splitlines() if event in line]
