"""What each answer of a broker means: a definite no, certainly not done, or unknown."""

import json
import threading
from decimal import Decimal

import pytest
from websockets.sync.server import ServerConnection, serve

from intents.execution import recorder, store
from intents.execution.model.inputs import DispatchResult
from intents.execution.model.verdicts import Rejected
from tip_broker_alpaca.account import Alpaca, Connection
from tip_brokers import (
    BrokerError,
    CredentialRefused,
    DuplicateClientOrderId,
    NewOrder,
    NotSent,
    OrderStatus,
    OrderUpdate,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Unreachable,
)
from tip_testing.broker_conformance.bounds import ends
from tip_testing.commands import create
from tip_testing.ports import reserved_port

from .scripted import SHOWN, Scripted

ORDER = NewOrder("tip-1", "ABC", "BUY", "Limit", Decimal("1.50"), "GTC", Decimal("2.10"))


ANSWERS = [
    (422, {"code": 40010001, "message": "client_order_id must be unique"}, DuplicateClientOrderId),
    (422, {"code": 42210000, "message": "no"}, Refused),
    (403, {"code": 40310000, "message": "insufficient buying power"}, Refused),
    (400, b"not json", OutcomeUnknown),
    (401, {"message": "request is not authorized"}, CredentialRefused),
    (403, {"message": "forbidden."}, CredentialRefused),
    (500, {"message": "oops"}, OutcomeUnknown),
    (503, b"", OutcomeUnknown),
    (302, b"", OutcomeUnknown),
    (408, {}, OutcomeUnknown),
    (200, b"", OutcomeUnknown),
    (200, b'{"id": ', OutcomeUnknown),
    (200, {}, OutcomeUnknown),
    (200, [], OutcomeUnknown),
    (200, {**SHOWN, "filled_qty": "NaN"}, OutcomeUnknown),
    (200, {**SHOWN, "updated_at": "yesterday"}, OutcomeUnknown),
    (200, {**SHOWN, "updated_at": "2026-01-05T12:00:00"}, OutcomeUnknown),
    (200, {**SHOWN, "qty": "1E+999999"}, OutcomeUnknown),
    (200, {**SHOWN, "id": "b" * 1_000_000}, OutcomeUnknown),
    (200, b"[" * 100_000, OutcomeUnknown),
    (422, b'{"message": ' * 100_000, OutcomeUnknown),
    (422, b'{"message": "half a pair: \\ud800"}', Refused),
    (200, {**SHOWN, "id": "\ud800"}, OutcomeUnknown),
    (200, {**SHOWN, "symbol": "A\0"}, OutcomeUnknown),
    (200, json.dumps({**SHOWN, "symbol": "A\0"}).encode("utf-16"), OutcomeUnknown),
]


@pytest.fixture
def alpaca(scripted: Scripted) -> Alpaca:
    return Connection(scripted.url, connect_seconds=5, read_seconds=10).account({"key_id": "k", "secret_key": "s"})


def test_numbers_are_sent_as_they_were_given(alpaca, scripted):
    scripted.says(200, SHOWN)

    shown = alpaca.create(ORDER)

    [(method, path, body)] = scripted.requests
    assert (method, path) == ("POST", "/v2/orders")
    assert body == {
        "symbol": "ABC", "side": "buy", "type": "limit", "qty": "1.50", "time_in_force": "gtc", "limit_price": "2.10",
        "client_order_id": "tip-1",
    }  # fmt: skip
    assert shown.status is OrderStatus.WORKING and shown.quantity == Decimal("1.5")


@pytest.mark.parametrize(
    ("status", "body", "meaning"), ANSWERS, ids=[f"{n}-{case[0]}" for n, case in enumerate(ANSWERS)]
)
def test_an_answer_is_a_definite_no_or_it_says_nothing(status, body, meaning, alpaca, scripted):
    scripted.says(status, body)

    with pytest.raises(meaning) as raised:
        alpaca.create(ORDER)

    assert type(raised.value) is meaning
    assert len(scripted.requests) == 1, "nothing is ever sent twice by itself"


def test_a_refusal_is_recorded_whatever_its_words_are(desk, alpaca, scripted):
    """The database keeps no half of a surrogate pair."""
    desk.created(create())
    [claimed] = [
        command
        for command in store.claim(desk.deps.connections.autocommit(), 1000, 60)
        if command.account_id == desk.account_id
    ]
    scripted.says(422, b'{"message": "half a pair: \\ud800"}')
    with pytest.raises(Refused) as refused:
        alpaca.create(ORDER)

    recorder.record(
        desk.deps.connections, [DispatchResult(claimed, Rejected(refused.value.code, refused.value.message))]
    )

    [intent] = desk.rows("intent")
    assert (intent["status"], intent["reason_code"]) == ("REJECTED", "BROKER_REFUSED")


def test_a_rate_limit_says_how_long(alpaca, scripted):
    scripted.says(429, {"message": "slow down"}, Retry_After="7")

    with pytest.raises(RateLimited) as raised:
        alpaca.create(ORDER)

    assert raised.value.retry_after == 7


def test_a_connection_cut_after_sending_is_unknown(alpaca, scripted):
    scripted.answer = None

    with pytest.raises(OutcomeUnknown):
        alpaca.create(ORDER)

    assert len(scripted.requests) == 1


def test_a_broker_that_is_not_there_was_certainly_not_reached():
    gone = Connection(f"http://127.0.0.1:{reserved_port()}").account({"key_id": "k", "secret_key": "s"})

    with pytest.raises(Unreachable):
        gone.create(ORDER)


def test_a_key_pair_that_no_request_can_carry_is_no_fault_of_the_line(scripted):
    bad = Connection(scripted.url).account({"key_id": "k\nX-Other: 1", "secret_key": "s"})

    with pytest.raises(NotSent) as raised:
        bad.create(ORDER)

    assert not isinstance(raised.value, Unreachable) and scripted.requests == []


def test_a_line_without_tls_where_tls_was_agreed_is_out_of_reach(scripted):
    secure = Connection(scripted.url.replace("http", "https")).account({"key_id": "k", "secret_key": "s"})

    with pytest.raises(Unreachable):
        secure.create(ORDER)

    assert scripted.requests == []


def test_holdings_that_are_not_a_list_say_nothing(alpaca, scripted):
    scripted.says(200, b"null")

    with pytest.raises(OutcomeUnknown):
        alpaca.positions()


@pytest.mark.parametrize(
    "message",
    [b"[" * 100_000, b'{"stream": "' + b"a" * 2**21 + b'"}', b'{"stream": "trade_updates", "data": []}'],
    ids=["deep", "large", "misshapen"],
)
def test_a_broken_message_of_the_stream_ends_it(message):
    def talk(socket: ServerConnection) -> None:
        for sent in (b'{"data": {"status": "authorized"}}', b'{"stream": "listening"}', message):
            socket.send(sent)
            socket.recv()

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        broker = Connection(address).account({"key_id": "k", "secret_key": "s"})
        updates: list[OrderUpdate] = []

        raised = ends(lambda: broker.listen(lambda: None, updates.append, threading.Event()))
        server.shutdown()

    assert isinstance(raised, BrokerError), repr(raised)
    assert updates == []


def test_an_unknown_status_does_not_end_an_order(alpaca, scripted):
    scripted.says(200, {**SHOWN, "status": "pondering"})

    assert alpaca.create(ORDER).status is OrderStatus.WORKING
