"""What the official SDK receives on the trade_updates stream."""

import json

import websockets.sync.client
from alpaca.trading.models import TradeUpdate


def test_stream_reports_the_life_of_an_order(client, symbol, listen):
    listener = listen(client)
    client.quote(symbol, "99", "101", ask_size="3")

    client.order(symbol, qty="5", client_order_id="life")
    client.quote(symbol, "99", "100")

    new, partial, fill = (TradeUpdate(**message) for message in listener.wait("new", "partial_fill", "fill"))
    assert (new.order.status.value, new.execution_id, new.price) == ("new", None, None)
    assert (partial.qty, partial.price, partial.position_qty, partial.order.filled_qty) == (3, 101, 3, "3")
    assert (fill.qty, fill.price, fill.position_qty, fill.order.status.value) == (2, 100, 5, "filled")
    assert partial.execution_id != fill.execution_id


def test_event_ids_rise_and_every_event_has_its_time(client, symbol, listen):
    listener = listen(client)

    client.order(symbol)
    client.order(symbol)

    updates = listener.wait("new", "fill", "new", "fill")
    ids = [message["event_id"] for message in updates]
    assert ids == sorted(set(ids))
    assert all(message["timestamp"].endswith("Z") for message in updates)


def test_stream_reports_cancel_and_replace(client, symbol, listen):
    listener = listen(client)
    old = client.order(symbol, type="limit", limit_price="90").json()
    new = client.raw("PATCH", f"/v2/orders/{old['id']}", json={"qty": "2"}).json()
    client.raw("DELETE", f"/v2/orders/{new['id']}")

    _, replaced, _, canceled = listener.wait("new", "replaced", "new", "canceled")

    assert (replaced["order"]["id"], replaced["order"]["replaced_by"]) == (old["id"], new["id"])
    assert canceled["order"]["id"] == new["id"]


def test_executions_in_the_stream_are_those_of_the_account_activities(client, symbol, listen):
    listener = listen(client)
    client.order(symbol)

    fill = listener.wait("new", "fill")[1]

    assert [item["execution_id"] for item in client.get("/account/activities/FILL")] == [fill["execution_id"]]


def test_accounts_receive_only_their_own_updates(shared_broker, client, symbol, listen):
    stranger = shared_broker.client()
    listener = listen(stranger)

    client.order(symbol)
    stranger.order(symbol, client_order_id="mine")

    assert [message["order"]["client_order_id"] for message in listener.wait("new", "fill")] == ["mine", "mine"]


def _dialogue(url, *messages):
    with websockets.sync.client.connect(url.replace("http", "ws") + "/stream") as socket:
        answers = []
        for message in messages:
            socket.send(message if isinstance(message, str) else json.dumps(message))
            answers.append(json.loads(socket.recv(timeout=60))["data"])
        return answers


def test_stream_answers_in_alpacas_words(client):
    login = {"action": "authenticate", "data": {"key_id": client.key, "secret_key": "secret"}}
    short_login = {"action": "auth", "key": client.key, "secret": "secret"}
    listen_to = {"action": "listen", "data": {"streams": ["trade_updates", "other"]}}

    assert _dialogue(client.url, login, listen_to) == [
        {"action": "authenticate", "status": "authorized"},
        {"streams": ["trade_updates"]},
    ]
    assert _dialogue(client.url, short_login)[0]["status"] == "authorized"


def test_stream_refuses_bad_keys_listening_without_keys_and_nonsense(client):
    bad = {"action": "authenticate", "data": {"key_id": "INVALID", "secret_key": "x"}}
    listen_to = {"action": "listen", "data": {"streams": ["trade_updates"]}}

    answers = _dialogue(client.url, bad, listen_to, "nonsense", "[]", '{"action": "listen", "data": []}')

    assert [answer.get("status") or answer["error"] for answer in answers] == [
        "unauthorized",
        "unauthorized",
        "invalid message",
        "invalid message",
        "invalid message",
    ]
