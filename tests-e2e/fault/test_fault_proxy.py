"""The proxy does to a real paper broker's requests what a scenario relies on, and nothing else."""

import io
import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tip_testing.ports import reserved_port
from tip_testing.processes import running

sys.path.insert(0, str(Path(__file__).parent))
from fault_proxy import (
    Arrivals,
    BrokerProxy,
    Hold,
    answer,
    cut_after,
    cut_before,
    delay,
    half_close,
    late,
    path_is,
    rewrite,
)

from tip_testing.waiting import eventually

ORDERS = path_is("/v2/orders")


@pytest.fixture(scope="module")
def broker_port() -> Iterator[int]:
    port = reserved_port()
    environment = {"PAPER_BROKER_PORT": str(port), "PAPER_BROKER_DATA": ":memory:", "PAPER_BROKER_PRICES": "fixed"}
    with running("-m", "paper_broker", environment=environment, ready=lambda _: _ready(port)):
        yield port


def _ready(port: int) -> bool:
    with suppress(requests.RequestException):
        return requests.get(f"http://127.0.0.1:{port}/health/ready", timeout=1).ok
    return False


@pytest.fixture
def proxy(broker_port: int) -> Iterator[BrokerProxy]:
    with BrokerProxy(broker_port) as made:
        yield made


class Client:
    def __init__(self, proxy: BrokerProxy) -> None:
        self.proxy, self.key = proxy, uuid4().hex
        self.session = requests.Session()
        self.session.headers.update({"APCA-API-KEY-ID": self.key, "APCA-API-SECRET-KEY": "secret"})

    def order(self, name: str, seconds: float = 10.0) -> requests.Response:
        body = {"symbol": "SIM.OPEN", "qty": "1", "side": "buy", "type": "market", "time_in_force": "day"}
        return self.session.post(f"{self.proxy.url}/v2/orders", json=body | {"client_order_id": name}, timeout=seconds)

    def names(self) -> list[str]:
        """Of the orders that the broker has, read without the proxy."""
        url = f"http://127.0.0.1:{self.proxy.upstream_port}/v2/orders"
        found = requests.get(url, headers=self.session.headers, timeout=10).json()
        return sorted(order["client_order_id"] for order in found)


@pytest.fixture
def client(proxy: BrokerProxy) -> Iterator[Client]:
    made = Client(proxy)
    yield made
    made.session.close()


def test_everything_passes_by_default_and_is_recorded(client, proxy):
    answered = client.order("first")

    assert answered.status_code == 200 and answered.json()["client_order_id"] == "first"
    (request,) = proxy.forwarded("POST")
    assert (request.client_order_id, request.key_id, request.status) == ("first", client.key, 200)
    assert request.received_at <= request.forwarded_at <= request.answered_at


def test_a_request_cut_before_forwarding_never_reaches_the_broker(client, proxy):
    rule = proxy.on("POST", cut_before, when=ORDERS, count=1)

    with pytest.raises(requests.ConnectionError):
        client.order("lost")

    assert rule.wait_for_hits()[0].forwarded_at is None
    assert client.order("next").ok and client.names() == ["next"]


@pytest.mark.parametrize("fault", [cut_after, half_close])
def test_an_answer_can_be_lost_after_the_broker_has_acted(client, proxy, fault):
    proxy.on("POST", fault, when=ORDERS, count=1)

    with pytest.raises(requests.RequestException):
        client.order("done")

    assert client.names() == ["done"]


def test_a_late_request_reaches_the_broker_long_after_its_client_was_cut_off(client, proxy):
    proxy.on("POST", late(1.0), when=ORDERS, count=1)

    with pytest.raises(requests.ConnectionError):
        client.order("late")

    assert client.names() == []
    eventually(lambda: client.names() == ["late"])
    (request,) = proxy.forwarded("POST")
    assert request.forwarded_at - request.received_at >= 1.0


def test_a_delayed_request_reaches_the_broker_although_its_client_has_timed_out(client, proxy):
    proxy.on("POST", delay(1.0), when=ORDERS, count=1)

    with pytest.raises(requests.Timeout):
        client.order("slow", seconds=0.3)

    eventually(lambda: client.names() == ["slow"])


def test_a_held_request_waits_for_its_release_while_others_pass(client, proxy):
    hold = Hold(cut=True)
    proxy.on("POST", hold, when=lambda request: request.client_order_id == "held")

    with pytest.raises(requests.ConnectionError):
        client.order("held")

    assert client.order("other").ok and client.names() == ["other"]
    hold.release()
    eventually(lambda: client.names() == ["held", "other"])


def test_the_proxy_answers_in_the_brokers_place_and_changes_its_answers(client, proxy):
    proxy.on("POST", answer(429, headers={"Retry-After": "1"}), when=ORDERS, count=1)
    proxy.on("POST", rewrite(lambda body: body.replace(b"accepted", b"rejected")), when=ORDERS, count=1)

    refused, changed = client.order("refused"), client.order("changed")

    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert changed.json()["status"] == "rejected"
    assert client.names() == ["changed"]


def test_the_stream_passes_can_be_changed_and_cut(client, proxy):
    proxy.stream_filter = lambda message: message.replace(b"SIM.OPEN", b"SIM.NEAR")
    with connect(proxy.url.replace("http", "ws", 1) + "/stream", proxy=None) as stream:
        stream.send(json.dumps({"action": "auth", "key": client.key, "secret": "secret"}))
        stream.recv(10)
        stream.send(json.dumps({"action": "listen", "data": {"streams": ["trade_updates"]}}))
        stream.recv(10)
        client.order("streamed")

        assert json.loads(stream.recv(10))["data"]["order"]["symbol"] == "SIM.NEAR"
        proxy.cut_streams()
        with pytest.raises(ConnectionClosed):
            stream.recv(10)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a socket received something")
def test_a_request_counts_as_arrived_when_the_kernel_had_it_however_late_the_proxy_looks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as sender:
        receiver, _ = server.accept()
        with receiver:
            arrivals = Arrivals(receiver)
            time.sleep(0.1)  # the first socket on a machine that wants stamps gets them a moment later
            began = time.time()
            sender.sendall(b"POST /v2/orders HTTP/1.1\r\n")
            time.sleep(0.5)

            assert io.BufferedReader(arrivals).readline() == b"POST /v2/orders HTTP/1.1\r\n"

    assert began - 0.1 <= arrivals.last_at < began + 0.4
