"""The same events for browsers and curl, as Server-Sent Events, and the document that describes them."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import jsonschema_rs
import pytest
import requests
from google.protobuf import json_format

from chassis import keys
from stream_gateway.routes.refusals import STATUSES
from tip_testing.identity_fixtures import IdentityFixtures, Organization
from tip_testing.waiting import eventually
from trading_proto import trading_pb2

from .gateway_process import Gateway, StartGateway
from .log_writer import Writer
from .sse_client import events, opened
from .subscribers import connected, key, run, subscribe

ROUTE = "/v1/accounts/{account_id}/events"
CONTRACT = Path(__file__).parents[3] / "docs" / "contract.md"


def test_the_events_are_the_very_same(gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer) -> None:
    writer.append(account_id, 2)

    async def scenario() -> list[trading_pb2.TradingEvent]:
        async with connected(gateway.target) as channel:
            return await (await subscribe(channel, key(acme.api_keys["paper"]), account_id, after=0)).received(2)

    with opened(gateway, acme.api_keys["paper"], account_id, "?resume_after_sequence=0") as answer:
        reading = events(answer)
        first, second, word = (next(reading) for _ in range(3))

    assert answer.headers["Content-Type"] == "text/event-stream" and answer.headers["X-Request-Id"]
    epoch = json.loads(word["data"])["epoch"]
    assert [event["id"] for event in (first, second, word)] == [f"1@{epoch}", f"2@{epoch}", f"2@{epoch}"]
    assert [event["event"] for event in (first, word)] == ["EVENT_TYPE_BROKER_ORDER", "replay_complete"]
    parsed = [json_format.Parse(event["data"], trading_pb2.TradingEvent()) for event in (first, second)]
    assert parsed == run(scenario())
    assert json.loads(first["data"])["broker_order"]["limit_price"] == "187.50"


def test_last_event_id_resumes_and_goes_on_live(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 300)

    with opened(gateway, acme.api_keys["paper"], account_id, Last_Event_ID="290") as answer:
        reading = events(answer)
        missed = [next(reading)["id"].partition("@")[0] for _ in range(10)]
        assert next(reading)["event"] == "replay_complete"
        writer.append(account_id, 2)
        new = (event["id"].partition("@")[0] for event in reading if event["event"] != "heartbeat")
        live = [next(new), next(new)]

    assert missed == [str(number) for number in range(291, 301)]
    assert live == ["301", "302"]


def test_heartbeats_come_here_too(gateway: Gateway, acme: Organization, account_id: UUID) -> None:
    with opened(gateway, acme.api_keys["paper"], account_id) as answer:
        beat = next(events(answer))

    assert beat["event"] == "heartbeat" and json.loads(beat["data"])["heartbeat"]["latest_sequence"] == "0"


def test_types_can_be_chosen(gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer) -> None:
    writer.append(account_id, 2)
    writer.append(account_id, kind="BROKER_TRADE", payload={"symbol": "AAPL"})
    query = "?subscriptions=EVENT_TYPE_BROKER_TRADE&subscriptions=EVENT_TYPE_CONTROL,EVENT_TYPE_ACCOUNT"

    with opened(gateway, acme.api_keys["paper"], account_id, query, Last_Event_ID="0") as answer:
        assert next(events(answer))["id"].startswith("3@")


@pytest.mark.parametrize(
    ("query", "headers", "code"),
    [
        ("?subscriptions=EVENT_TYPE_UNSPECIFIED", {}, "bad_subscription"),
        ("?subscriptions=", {}, "bad_subscription"),
        ("?what=else", {}, "unknown_query"),
        ("?resume_after_sequence=0&resume_after_sequence=0", {}, "repeated_query"),
        ("?resume_epoch=a&resume_epoch=a", {}, "repeated_query"),
        ("?resume_after_sequence=-1", {}, "bad_position"),
        ("", {"Last_Event_ID": "@6f1c"}, "bad_position"),
        ("", {"Last_Event_ID": "one"}, "bad_position"),
        ("", {"Last_Event_ID": "9" * 20}, "out_of_range"),
        ("?resume_after_sequence=1", {}, "out_of_range"),
    ],
)
def test_what_makes_no_sense_is_a_problem(
    gateway: Gateway, acme: Organization, account_id: UUID, query: str, headers: dict[str, str], code: str
) -> None:
    with opened(gateway, acme.api_keys["paper"], account_id, query, **headers) as answer:
        problem = answer.json()

    assert answer.status_code == 400 and problem["code"] == code
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert problem["request_id"] == answer.headers["X-Request-Id"]


def test_a_refusal_has_the_same_code_as_at_every_other_endpoint(
    gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    def code(api_key: str, account: object) -> tuple[int, str]:
        with opened(gateway, api_key, account) as answer:
            return answer.status_code, answer.json()["code"]

    assert code(acme.api_keys["paper"], "no-id") == (400, "bad_id")
    assert code(acme.api_keys["paper"], uuid4()) == (404, "not_found")
    table = set(re.findall(r"`(\w+)`", CONTRACT.read_text()))
    assert {word for _, _, word in STATUSES.values()} - table == {"stuck"}, "whoever is stuck is cut without a reason"


def test_other_paths_and_methods_are_problems_too(gateway: Gateway, acme: Organization, account_id: UUID) -> None:
    path = f"{gateway.events_url}/v1/accounts/{account_id}/events"
    answers = [
        requests.request(method, address, headers={"x-api-key": acme.api_keys["paper"]}, timeout=60)
        for method, address in (("POST", path), ("HEAD", path), ("GET", f"{path}/more"), ("GET", gateway.events_url))
    ]

    assert [answer.status_code for answer in answers] == [405, 405, 404, 404]
    assert answers[0].headers["Allow"] == "GET"
    assert requests.get(f"{gateway.events_url}/v1/accounts/x/events", timeout=60).status_code == 401
    assert answers[2].json()["code"] == "not_found"


def test_a_disabled_key_receives_the_reason_why_its_stream_ends(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    doomed = identity.key(acme.id, "paper")

    with opened(gateway, doomed, account_id) as answer:
        began = time.monotonic()
        writer.execute("UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix", prefix=keys.prefix(doomed))
        last = list(events(answer))[-1]

    assert last["event"] == "end" and json.loads(last["data"])["code"] == "credential_ended"
    assert time.monotonic() - began <= 5


def test_whoever_leaves_or_does_not_read_is_let_go(
    start_gateway: StartGateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    gateway = start_gateway(STUCK_SECONDS="1", BUFFER_EVENTS="64")
    with opened(gateway, acme.api_keys["paper"], account_id):
        assert gateway.metric('tip_stream_subscribers{transport="sse"}') == 1

    with not_reading(gateway, acme.api_keys["paper"], account_id):
        append_more_than_fits(writer, account_id)
        eventually(lambda: not connections(gateway))

    assert gateway.metric("tip_stream_subscribers") == 0
    assert gateway.metric('tip_stream_ended_total{reason="stuck",transport="sse"') == 1


def test_whoever_is_revoked_and_does_not_read_is_let_go_too(
    start_gateway: StartGateway, identity: IdentityFixtures, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """It is sent the reason, but nobody waits for ever until it has read that."""
    gateway = start_gateway(STUCK_SECONDS="4", RECHECK_SECONDS="0.2")
    doomed = identity.key(acme.id, "paper")

    with not_reading(gateway, doomed, account_id):
        append_more_than_fits(writer, account_id)
        writer.execute("UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix", prefix=keys.prefix(doomed))
        eventually(lambda: gateway.metric('tip_stream_ended_total{reason="credential_ended",transport="sse"'))
        eventually(lambda: not connections(gateway))
        assert gateway.metric("tip_stream_subscribers") == 0


@contextmanager
def not_reading(gateway: Gateway, api_key: str, account_id: object) -> Iterator[None]:
    """A subscriber that reads nothing after the first line."""
    with socket.create_connection(("127.0.0.1", int(gateway.environment["EVENTS_PORT"]))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET /v1/accounts/{account_id}/events HTTP/1.1\r\nHost: x\r\nx-api-key: {api_key}\r\n\r\n"
        connection.sendall(request.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        yield


def append_more_than_fits(writer: Writer, account_id: UUID) -> None:
    for _ in range(6):
        writer.append(account_id, 500, payload={"symbol": "AAPL", "reason": "x" * 3000})


def connections(gateway: Gateway) -> list[str]:
    """The connections to the port of the events that the gateway keeps open, as the kernel lists them."""
    port, established = f":{int(gateway.environment['EVENTS_PORT']):04X}", "01"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[2] for row in rows if row[1].endswith(port) and row[3] == established]


def test_the_document_describes_what_really_comes(
    gateway: Gateway, identity: IdentityFixtures, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    """Every type with a payload, the messages about the stream, and its end; no field that the document lacks."""
    doomed = identity.key(acme.id, "paper")
    for kind in ("BROKER_ORDER", "BROKER_TRADE", "BROKER_POSITION", "CONTROL", "ACCOUNT", "REFUSAL"):
        writer.append(account_id, kind=kind, traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    controls = '{"decision": "allowed", "checks": [{"control": "symbol_manual", "version": 3, "outcome": "passed"}]}'
    writer.append_action(account_id, '{"Limit": {"quantity": "5", "limit_price": "2"}}', controls)
    document = requests.get(f"{gateway.events_url}/openapi.json", timeout=60).json()
    schemas = {
        name: schema | ({"additionalProperties": False} if name != "Problem" else {})
        for name, schema in document["components"]["schemas"].items()
    }

    def fits(name: str, value: object) -> bool:
        whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        jsonschema_rs.validator_for(whole, validate_formats=True).validate(value)
        return True

    seen = []
    with opened(gateway, doomed, account_id, "?resume_after_sequence=0") as answer:
        [media_type] = document["paths"][ROUTE]["get"]["responses"]["200"]["content"]
        assert answer.headers["Content-Type"] == media_type
        for event in events(answer):
            seen.append(event["event"])
            assert fits("ServerSentEvent", event)
            assert fits("StreamEnd" if event["event"] == "end" else "TradingEvent", json.loads(event["data"]))
            if event["event"] == "heartbeat":
                disable = "UPDATE identity.api_key SET disabled = true WHERE prefix = :prefix"
                writer.execute(disable, prefix=keys.prefix(doomed))

    assert set(seen) == set(schemas["ServerSentEventEvent"]["enum"])
    assert requests.get(f"{gateway.events_url}/docs", timeout=60).text.count(f"{ROUTE}<") == 1


def test_the_document_lists_every_refusal_and_every_parameter(
    gateway: Gateway, acme: Organization, account_id: UUID
) -> None:
    operation = requests.get(f"{gateway.events_url}/openapi.json", timeout=60).json()["paths"][ROUTE]["get"]
    named = {parameter["name"]: parameter for parameter in operation["parameters"]}
    every_type = ",".join(named["subscriptions"]["schema"]["items"]["enum"])
    query = f"?subscriptions={every_type}&resume_after_sequence=0"

    with opened(gateway, acme.api_keys["paper"], account_id, query, Last_Event_ID="0") as answer:
        assert answer.status_code == 200
        assert next(events(answer))["event"] == "replay_complete"
    assert set(named) == {
        "account_id",
        "subscriptions",
        "resume_after_sequence",
        "resume_epoch",
        "Last-Event-ID",
        "ticket",
    }
    assert set(operation["responses"]) == {"200", "400", "401", "403", "404", "429", "503"}
    refused = requests.get(gateway.events_url + ROUTE.format(account_id=account_id), timeout=60)
    assert set(refused.json()) == {"type", "title", "status", "detail", "instance", "code", "request_id"}


def test_a_page_of_a_configured_origin_may_read_a_stream(
    start_gateway: StartGateway, acme: Organization, account_id: UUID
) -> None:
    gateway, desk = start_gateway(CORS_ORIGINS="https://desk.example"), {"Origin": "https://desk.example"}
    address = f"{gateway.events_url}{ROUTE.format(account_id=account_id)}"

    before = requests.options(address, headers={**desk, "Access-Control-Request-Method": "GET"}, timeout=60)
    refused = requests.get(address, headers=desk, timeout=60)
    with requests.get(
        address, headers={**desk, **dict(key(acme.api_keys["paper"]))}, stream=True, timeout=30
    ) as stream:
        allowed = [answer.headers.get("Access-Control-Allow-Origin") for answer in (before, refused, stream)]

        assert (before.status_code, refused.status_code, stream.status_code) == (204, 401, 200)
    assert allowed == ["https://desk.example"] * 3
    other = requests.get(address, headers={"Origin": "https://evil.example"}, timeout=60)
    assert "Access-Control-Allow-Origin" not in other.headers
