"""Events through the client, on a whole platform."""

import threading
from typing import Any

import pytest
from sdk_platform import Platform

import tip_client as tip
from tip_client.events import KINDS
from tip_testing.waiting import eventually

TRANSPORTS = ("sse", "grpc")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_an_order_is_followed_from_submit_to_fill(client: tip.Client, symbol: str, transport: Any) -> None:
    start = client.verify().last_sequence
    order = client.buy(symbol, 2)
    seen = []

    with client.events(after=start, transport=transport) as events:
        for event in events:
            match event:
                case tip.ActionAppended(intent_id=order.intent_id):
                    seen.append("action")
                case tip.OrderUpdate(intent_id=order.intent_id, status=status):
                    seen.append(str(status))
                case tip.Fill(intent_id=order.intent_id, symbol=filled, quantity=quantity):
                    assert (filled, quantity) == (symbol, 2)
                    break

    assert seen[:2] == ["action", "ACCEPTED"]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_events_go_on_after_a_stored_position(
    platform: Platform, own_account: str, symbol: str, transport: Any
) -> None:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        for _ in range(3):
            client.buy(symbol, 1).wait("FILLED", timeout=60)
        last = client.verify().last_sequence
        whole = read_until(client, 0, last, transport)

        half = whole[len(whole) // 2]
        rest = read_until(client, str(half.position), last, transport)

        assert whole[: len(whole) // 2 + 1] + rest == whole
        assert [event.position.sequence for event in whole] == list(range(1, last + 1))


def test_both_transports_yield_the_same_events(platform: Platform, own_account: str, symbol: str) -> None:
    with platform.admin() as admin:
        admin.for_account(own_account).controls.set_limits(max_quantity="100")
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        client.buy(symbol, 1, tags=["both"], client_id="first").wait("FILLED", timeout=60)
        with pytest.raises(tip.ControlRejected):
            client.buy(symbol, 101)
        last = next(e.position.sequence for e in client.events(after=0) if isinstance(e, tip.Refusal))

        by_sse, by_grpc = (read_until(client, 0, last, transport) for transport in TRANSPORTS)

        assert by_sse == by_grpc
        assert {type(event) for event in by_sse} == set(KINDS.values())


def read_until(client: tip.Client, after: Any, last: int, transport: Any) -> list[tip.Event]:
    found = []
    with client.events(after=after, transport=transport) as events:
        for event in events:
            found.append(event)
            if event.position.sequence >= last:
                return found
    raise AssertionError


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_only_events_of_the_wanted_types_come(client: tip.Client, symbol: str, transport: Any) -> None:
    start = client.verify().last_sequence
    client.buy(symbol, 1).wait("FILLED", timeout=60)

    with client.events(after=start, types=[tip.Fill], transport=transport) as events:
        first = next(events)

    assert isinstance(first, tip.Fill) and first.symbol == symbol


def test_open_streams_of_the_account_are_counted(platform: Platform, own_account: str, symbol: str) -> None:
    with tip.Client(settings=platform.settings(account=own_account)) as client:
        client.buy(symbol, 1)
        assert client.open_streams().open == 0
        with client.events(after=0, transport="sse") as by_sse, client.events(after=0, transport="grpc") as by_grpc:
            assert next(by_sse) == next(by_grpc)
            found = eventually(lambda: (counted := client.open_streams()).open == 2 and counted)

        assert (found.account_id, found.by_transport) == (own_account, {"grpc": 1, "sse": 1})
        eventually(lambda: client.open_streams().open == 0)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_revoked_key_ends_its_events_with_the_right_exception(platform: Platform, transport: Any) -> None:
    with platform.admin() as admin:
        key = admin.keys.create("short-lived", environment="paper", permissions=["intent:read"])
        with tip.Client(settings=platform.settings(key=key.key)) as client:
            events = client.events(transport=transport)
            threading.Timer(1.0, admin.keys.delete, [key.id]).start()

            with pytest.raises(tip.Unauthenticated):
                for _event in events:
                    pass
            events.close()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_position_of_another_epoch_is_out_of_range(client: tip.Client, transport: Any) -> None:
    of_another_log = tip.LogPosition(1, "00000000-0000-4000-8000-000000000000")

    with pytest.raises(tip.PositionOutOfRange), client.events(after=of_another_log, transport=transport) as events:
        next(events)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_gateway_that_cannot_be_reached_is_given_up_when_the_caller_wishes(
    platform: Platform, transport: Any
) -> None:
    nowhere = platform.settings(events_url="http://127.0.0.1:1", stream_target="127.0.0.1:1")

    with tip.Client(settings=nowhere) as client, pytest.raises(tip.ConnectionFailed):
        next(client.events(transport=transport, give_up_after=1.0))
