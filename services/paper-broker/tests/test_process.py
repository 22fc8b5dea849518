"""The process: starting, stopping, being killed, and doing the same again."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import uuid

import pytest
import requests
import websockets.exceptions
import websockets.sync.client

from paper_broker.config import BadConfig, Config
from tip_testing.waiting import eventually


def place_until_dead(client, answered):
    for number in range(100_000):
        name = f"{client.key}-{number}"
        try:
            if client.order("AAPL", qty="0.001", client_order_id=name).status_code == 200:
                answered.append(name)
        except requests.ConnectionError:
            return


def test_every_acknowledged_order_survives_kill_nine(start):
    answered = []
    for _ in range(2):
        broker = start()
        threads = [threading.Thread(target=place_until_dead, args=(broker.client(), answered)) for _ in range(4)]
        for thread in threads:
            thread.start()
        wanted = len(answered) + 60
        eventually(lambda wanted=wanted: len(answered) >= wanted)
        broker.stop(signal.SIGKILL)
        for thread in threads:
            thread.join()

    ledger = start().ledger()
    kept = [line["client_order_id"] for line in ledger]
    assert set(answered) <= set(kept)
    assert len(kept) == len(set(kept))
    assert all(line["posts"] == 1 and line["status"] == "filled" for line in ledger)


def test_cash_positions_and_open_orders_survive_kill_nine(start):
    broker = start()
    client = broker.client("key")
    client.quote("AAPL", "99", "101")
    client.order("AAPL", qty="10")
    client.order("AAPL", side="sell", type="limit", limit_price="120", qty="4", client_order_id="waiting")
    before = client.raw("GET", "/v2/account").json(), client.raw("GET", "/v2/positions").json()
    broker.stop(signal.SIGKILL)

    client = start().client("key")

    assert (client.raw("GET", "/v2/account").json(), client.raw("GET", "/v2/positions").json()) == before
    client.quote("AAPL", "120", "121")
    assert client.by_client_id("waiting")["status"] == "filled"
    assert client.order("SIM.OPEN", client_order_id="waiting").status_code == 422


def test_late_fill_still_comes_after_a_restart(start):
    broker = start(PAPER_BROKER_SETTLE_MILLIS="60000")
    client = broker.client("key")
    order = client.order("SIM.LATE_FILL", client_order_id="late").json()
    client.raw("DELETE", f"/v2/orders/{order['id']}")
    broker.stop(signal.SIGKILL)

    client = start(PAPER_BROKER_SETTLE_MILLIS="0").client("key")

    assert client.by_client_id("late")["status"] == "filled"


def session(broker):
    """The same intents and ticks, and what came of them without the times."""
    client = broker.client("same key")
    for number in range(30):
        kind = {"type": "limit", "limit_price": "250"} if number % 3 else {}
        client.order("ABC" if number % 2 else "XYZ", qty="1.5", client_order_id=str(number), **kind)
        client.raw("POST", "/sim/ticks", json={"count": 3})
    fields = ("execution_id", "order_id", "symbol", "price", "qty", "type", "cum_qty")
    fills = [tuple(item[name] for name in fields) for item in client.get("/account/activities", {"direction": "asc"})]
    return fills, [(line["order_id"], line["status"]) for line in broker.ledger()]


def test_same_seed_and_same_intents_give_the_same_executions(start):
    first = session(start("one", PAPER_BROKER_SEED="42", PAPER_BROKER_QUOTE_SIZE="1"))
    second = session(start("two", PAPER_BROKER_SEED="42", PAPER_BROKER_DATA=":memory:", PAPER_BROKER_QUOTE_SIZE="1"))
    other = session(start("three", PAPER_BROKER_SEED="43", PAPER_BROKER_QUOTE_SIZE="1"))

    assert len(first[0]) > 20
    assert first == second
    assert first[0] != other[0]


def test_without_a_seed_two_brokers_never_share_ids(start):
    ids = [start(name).client("key").order("SIM.OPEN").json()["id"] for name in ("one", "two")]

    assert ids[0] != ids[1]


def test_market_moves_by_itself_when_ticks_are_on(start):
    client = start(PAPER_BROKER_TICK_MILLIS="10").client()
    first = client.raw("GET", "/sim/quotes/AAPL").json()

    assert eventually(lambda: client.raw("GET", "/sim/quotes/AAPL").json()["step"] > first["step"])


def test_prices_from_a_file_take_one_line_per_tick(start, tmp_path):
    path = tmp_path / "prices.csv"
    path.write_text("symbol,bid,ask,bid_size,ask_size\nABC,9,10,,5\nXYZ,1,2,,\nABC,19,20,,\n")
    client = start(PAPER_BROKER_PRICES=f"file:{path}").client()

    client.order("ABC", qty="8", client_order_id="abc")
    assert client.by_client_id("abc")["filled_qty"] == "5"
    client.raw("POST", "/sim/ticks", json={"count": 4})

    assert client.by_client_id("abc")["filled_avg_price"] == "13.75"
    assert client.raw("GET", "/sim/quotes/XYZ").json()["ask"] == "2"


def test_quote_that_was_set_stays_until_it_is_released(client):
    symbol = "T" + uuid.uuid4().hex[:8].upper()
    client.quote(symbol, "50", "51")
    client.raw("POST", "/sim/ticks", json={"count": 3})
    assert client.raw("GET", f"/sim/quotes/{symbol}").json()["bid"] == "50"

    client.raw("DELETE", f"/sim/quotes/{symbol}")
    client.raw("POST", "/sim/ticks", json={"count": 3})

    assert client.raw("GET", f"/sim/quotes/{symbol}").json()["bid"] != "50"


@pytest.mark.parametrize("body", [{"bid": "2", "ask": "1"}, {"bid": "1"}, {"bid": "-1", "ask": "1"}])
def test_senseless_quote_is_refused(client, body):
    assert client.raw("PUT", "/sim/quotes/AAPL", json=body).status_code == 422


def test_storage_can_be_read_beside_the_running_broker(start, tmp_path):
    start().client().order("SIM.OPEN", client_order_id="seen")

    with sqlite3.connect(f"file:{tmp_path}/own/paper-broker.sqlite3?mode=ro", uri=True) as database:
        rows = database.execute("SELECT client_order_id FROM orders").fetchall()
    database.close()

    assert rows == [("seen",)]


def test_health_says_live_and_ready(shared_broker):
    answers = [requests.get(f"{shared_broker.url}/health/{name}", timeout=60) for name in ("live", "ready")]

    assert [answer.json() for answer in answers] == [{"status": "live"}, {"status": "ready"}]


def test_terminate_stops_cleanly_with_callers_hanging_and_listening(start):
    broker = start(PAPER_BROKER_HANG_MILLIS="60000")
    client = broker.client()
    hanging = threading.Thread(target=hang, args=(client,))
    hanging.start()
    with websockets.sync.client.connect(broker.url.replace("http", "ws") + "/stream") as socket:
        while not broker.ledger():
            pass
        broker.process.send(signal.SIGTERM)
        with pytest.raises(websockets.exceptions.ConnectionClosedOK):
            socket.recv(timeout=60)

    assert broker.process.wait(60) == 0
    hanging.join()
    assert "paper_broker_stopped" in broker.log.read_text()


def hang(client):
    with pytest.raises(requests.ConnectionError):
        client.order("SIM.TIMEOUT_AFTER_ACCEPT")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAPER_BROKER_PORT", "eighty"),
        ("PAPER_BROKER_PORT", "70000"),
        ("PAPER_BROKER_CASH", "NaN"),
        ("PAPER_BROKER_TICK_MILLIS", "-1"),
        ("PAPER_BROKER_PRICES", "oracle"),
        ("PAPER_BROKER_PRICES", "file:/no/such/file.csv"),
    ],
)
def test_bad_setting_is_named_in_one_line(name, value):
    with pytest.raises(BadConfig) as refused:
        Config.from_env({name: value}).tape()

    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_data_of_another_seed_or_in_use_is_one_line_and_exit_code_two(start, tmp_path):
    def exit_of(**settings):
        environ = {**os.environ, "PAPER_BROKER_PORT": "0", "PAPER_BROKER_DATA": str(tmp_path / "own"), **settings}
        command = [sys.executable, "-m", "paper_broker"]
        run = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
        return run.returncode, run.stderr

    broker = start(PAPER_BROKER_SEED="1")
    code, message = exit_of(PAPER_BROKER_SEED="1")
    assert (code, message.count("\n"), "another paper broker is using" in message) == (2, 1, True)
    broker.stop()
    code, message = exit_of(PAPER_BROKER_SEED="2")
    assert (code, message.count("\n"), "was made with '1'" in message) == (2, 1, True)
