"""Every scripted fault, and faults by chance."""

import signal
import time
from collections import Counter
from decimal import Decimal

import pytest
import requests

from tip_testing.waiting import eventually


def status(client, client_order_id):
    return client.by_client_id(client_order_id)["status"]


def test_reject_refuses_and_stores_nothing(client):
    answer = client.order("SIM.REJECT", client_order_id="r")

    assert (answer.status_code, answer.json()["code"]) == (422, 42210000)
    assert client.raw("GET", "/v2/orders:by_client_order_id?client_order_id=r").status_code == 404


def test_reject_later_accepts_and_rejects_by_event(client, listen):
    listener = listen(client)

    assert client.order("SIM.REJECT_LATER", client_order_id="r").json()["status"] == "accepted"

    listener.wait("new", "rejected")
    assert status(client, "r") == "rejected"
    assert client.get_account().buying_power == "100000"


@pytest.mark.parametrize("price", [None, "50"])
def test_partial50_fills_half_and_keeps_the_rest_open(client, listen, price):
    listener = listen(client)

    client.order("SIM.PARTIAL50", qty="5", client_order_id="p", type="limit" if price else "market", limit_price=price)

    assert listener.wait("new", "partial_fill")[1]["price"] == (price or "100.01")
    order = client.by_client_id("p")
    assert (order["status"], order["filled_qty"]) == ("partially_filled", "2.5")
    client.cancel_order_by_id(order["id"])
    assert status(client, "p") == "canceled"


def test_timeout_after_accept_stores_the_order_and_cuts_the_connection(client):
    started = time.monotonic()
    with pytest.raises(requests.ConnectionError):
        client.order("SIM.TIMEOUT_AFTER_ACCEPT", client_order_id="t")

    assert time.monotonic() - started > 0.25
    assert status(client, "t") == "filled"
    assert client.order("SIM.OPEN", client_order_id="t").json()["message"] == "client_order_id must be unique"


def test_error500_after_accept_has_done_everything(client):
    for change in (
        lambda: client.order("SIM.ERROR500_AFTER_ACCEPT", client_order_id="e", type="limit", limit_price="1"),
        lambda: client.raw("PATCH", f"/v2/orders/{client.by_client_id('e')['id']}", json={"client_order_id": "f"}),
        lambda: client.raw("DELETE", f"/v2/orders/{client.by_client_id('f')['id']}"),
    ):
        answer = change()
        assert (answer.status_code, answer.json()["code"]) == (500, 50010000)

    assert (status(client, "e"), status(client, "f")) == ("replaced", "canceled")


def test_duplicate_event_sends_each_update_twice_with_the_same_execution(client, listen):
    listener = listen(client)

    client.order("SIM.DUPLICATE_EVENT")

    updates = listener.wait("new", "new", "fill", "fill")
    assert updates[0] == updates[1]
    assert updates[2] == updates[3]
    assert len(client.get("/account/activities/FILL")) == 1


def test_late_fill_fills_after_the_cancel_was_accepted(client, listen):
    listener = listen(client)
    order = client.order("SIM.LATE_FILL", client_order_id="l", type="limit", limit_price="100").json()
    assert status(client, "l") == "new"

    assert client.raw("DELETE", f"/v2/orders/{order['id']}").status_code == 204

    listener.wait("new", "pending_cancel", "fill")
    assert status(client, "l") == "filled"


def test_cancel_reject_refuses_the_cancel_after_accepting_it(client, listen):
    listener = listen(client)
    order = client.order("SIM.CANCEL_REJECT", client_order_id="c", type="limit", limit_price="1").json()

    assert client.raw("DELETE", f"/v2/orders/{order['id']}").status_code == 204

    listener.wait("new", "pending_cancel", "order_cancel_rejected")
    assert status(client, "c") == "new"


def test_replace_reject_refuses_the_replacement_after_accepting_it(client, listen):
    listener = listen(client)
    order = client.order("SIM.REPLACE_REJECT", client_order_id="old", type="limit", limit_price="1").json()

    change = {"qty": "2", "client_order_id": "new"}
    answer = client.raw("PATCH", f"/v2/orders/{order['id']}", json=change)
    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")

    updates = listener.wait("new", "pending_replace", "order_replace_rejected")
    assert updates[1]["order"]["status"] == "pending_replace"
    assert (status(client, "old"), status(client, "new")) == ("new", "rejected")


def test_slow_answers_after_a_delay(client):
    started = time.monotonic()

    answer = client.order("SIM.SLOW")

    assert (answer.status_code, time.monotonic() - started > 0.3) == (200, True)


def test_rate_limit_turns_each_order_away_twice(shared_broker, client):
    answers = [client.order("SIM.RATE_LIMIT", client_order_id=name) for name in "aaabbb"]

    assert [answer.status_code for answer in answers] == [429, 429, 200, 429, 429, 200]
    assert answers[0].headers["Retry-After"] == "1"
    mine = str(client.get_account().id)
    lines = [line for line in shared_broker.ledger() if line["account_id"] == mine]
    assert [(line["client_order_id"], line["posts"], line["refused"]) for line in lines] == [("a", 3, 2), ("b", 3, 2)]


def test_open_never_fills(client):
    client.order("SIM.OPEN", client_order_id="o")
    client.raw("POST", "/sim/ticks", json={"count": 5})

    assert status(client, "o") == "new"


def send_many(client, count):
    answers = Counter()
    for number in range(count):
        try:
            answers[client.order("SIM.OPEN", qty="0.001", client_order_id=f"n{number}").status_code] += 1
        except requests.ConnectionError:
            answers["cut"] += 1
    return answers


def test_faults_by_chance_are_the_same_for_the_same_seed(start):
    seen = []
    for name in ("one", "two"):
        broker = start(name, PAPER_BROKER_SEED="7", PAPER_BROKER_HANG_MILLIS="1")
        broker.faults(timeout_after_accept=0.1, error_after_accept=0.1, unavailable=0.1, rate_limited=0.1)
        answers = send_many(broker.client("key"), 80)
        seen.append((answers, [line["client_order_id"] for line in broker.ledger()]))

    answers, accepted = seen[0]
    assert seen[0] == seen[1]
    assert set(answers) == {200, 429, 500, 503, "cut"}
    assert len(accepted) == answers[200] + answers[500] + answers["cut"]


def test_cut_before_accept_and_unavailable_reads_store_nothing(start):
    broker = start()
    client = broker.client()
    broker.faults(cut_before_accept=1, reads_unavailable=1)

    assert send_many(client, 1) == {"cut": 1}
    assert client.raw("GET", "/v2/orders").status_code == 503

    broker.faults()
    assert client.raw("GET", "/v2/orders").json() == broker.ledger() == []


def test_broker_that_does_not_enforce_client_ids_shows_double_orders_in_its_ledger(start):
    broker = start()
    broker.faults(accept_duplicate_client_order_ids=True)
    client = broker.client()

    assert [client.order("SIM.OPEN", client_order_id="twice").status_code for _ in range(2)] == [200, 200]

    summary = broker.sim("GET", "/ledger/summary").json()
    assert (summary["orders"], summary["client_order_ids"], summary["posts"]) == (2, 1, 2)


@pytest.mark.parametrize("bad", [{"slow": 2}, {"slow": -1}, {"slow": "1"}, {"unknown": 1}, {"rate_limit_first": 1.5}])
def test_senseless_fault_settings_are_refused(shared_broker, bad):
    before = shared_broker.sim("GET", "/faults").json()

    assert shared_broker.faults(**bad).status_code == 422

    assert shared_broker.sim("GET", "/faults").json() == before


@pytest.mark.parametrize(("side", "price"), [("buy", "100.01"), ("sell", "99.99")])
def test_trickle_fills_by_one_at_its_own_rate_and_a_replacement_goes_on_alike(client, shared_broker, side, price):
    client.order("SIM.TRICKLE50", qty="40", side=side, client_order_id=f"slow-{side}")
    eventually(lambda: status(client, f"slow-{side}") == "partially_filled")
    order_id = client.by_client_id(f"slow-{side}")["id"]
    client.raw("PATCH", f"/v2/orders/{order_id}", json={"qty": "3", "client_order_id": f"next-{side}"})

    eventually(lambda: status(client, f"next-{side}") == "filled")
    mine = str(client.get_account().id)
    old, new = [line for line in shared_broker.ledger() if line["account_id"] == mine]
    assert (old["status"], {fill["qty"] for fill in old["executions"]}) == ("replaced", {"1"})
    assert [(fill["qty"], fill["price"]) for fill in new["executions"]] == [("1", price)] * 3
    assert len({fill["id"] for fill in old["executions"] + new["executions"]}) == len(old["executions"]) + 3
    signed = Decimal(len(old["executions"]) + 3)
    held = shared_broker.sim("GET", "/ledger/positions").json()
    assert [Decimal(line["qty"]) for line in held if line["account_id"] == mine] == [
        signed if side == "buy" else -signed
    ]


def test_trickle_waits_for_its_limit_and_ends_when_canceled(client):
    client.order("SIM.TRICKLE100", qty="9", type="limit", limit_price="100", client_order_id="dear")
    client.order("SIM.TRICKLE100", qty="900", client_order_id="long")
    eventually(lambda: Decimal(client.by_client_id("long")["filled_qty"]) >= 3)

    client.cancel_order_by_id(client.by_client_id("long")["id"])

    filled = client.by_client_id("long")["filled_qty"]
    assert status(client, "dear") == "new"
    client.order("SIM.TRICKLE100", qty="3", client_order_id="after")
    eventually(lambda: status(client, "after") == "filled")
    assert client.by_client_id("long")["filled_qty"] == filled


def test_trickle_goes_on_after_a_kill(start):
    broker = start()
    broker.client("mine").order("SIM.TRICKLE5", qty="4", client_order_id="slow")
    eventually(lambda: Decimal(broker.client("mine").by_client_id("slow")["filled_qty"]) > 0)
    broker.stop(signal.SIGKILL)

    client = start().client("mine")

    eventually(lambda: status(client, "slow") == "filled")
    assert client.by_client_id("slow")["filled_qty"] == "4"


def test_reused_execution_ids_are_the_same_on_the_accounts_next_order(client, shared_broker):
    for name in ("first", "second"):
        client.order("SIM.REUSED_EXECUTION", client_order_id=name)

    mine = str(client.get_account().id)
    first, second = [line["executions"] for line in shared_broker.ledger() if line["account_id"] == mine]
    assert first[0]["id"] == second[0]["id"] and (len(first), len(second)) == (1, 1)
