"""The stream's schema: well-formed, not broken by a change, and the stubs are made from it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor import FieldDescriptor

from trading_proto import trading_pb2

PROTO = Path(__file__).parents[1]
BUF = Path(sys.executable).with_name("buf")


def buf(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUF, *arguments], cwd=PROTO, capture_output=True, text=True, check=False)


def test_the_schema_keeps_the_rules_and_comments_on_everything() -> None:
    found = buf("lint")

    assert (found.returncode, found.stdout) == (0, "")


def breaking(place: Path, text: str) -> subprocess.CompletedProcess[str]:
    """What buf says of the schema as a successor of the released one; in a folder apart, as it compares whole ones."""
    for name, schema in (("new", text), ("released", (PROTO / "released" / "trading.proto").read_text())):
        (place / name).mkdir()
        (place / name / "trading.proto").write_text(schema)
    return buf(
        "breaking",
        place / "new",
        "--against",
        place / "released",
        "--config",
        '{"version":"v2","breaking":{"use":["FILE"]}}',
    )


def test_the_schema_breaks_no_client_of_the_released_one(tmp_path: Path) -> None:
    found = breaking(tmp_path, (PROTO / "trading.proto").read_text())

    assert (found.returncode, found.stdout) == (0, "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("string reason_code = 13", "string reason_code = 33"),
        ("EVENT_TYPE_CONTROL = 5", "EVENT_TYPE_CONTROLS = 5"),
        ("uint64 sequence = 2", "string sequence = 2"),
        ("rpc SubscribeEvents(", "rpc Subscribe("),
    ],
)
def test_a_breaking_change_is_noticed(tmp_path: Path, before: str, after: str) -> None:
    text = (PROTO / "trading.proto").read_text()
    assert before in text

    found = breaking(tmp_path, text.replace(before, after))

    assert found.returncode != 0
    assert "trading.proto" in found.stdout


def test_the_stubs_are_those_of_the_schema(tmp_path: Path) -> None:
    generator = importlib.util.spec_from_file_location("generate", PROTO / "generate.py")
    module = importlib.util.module_from_spec(generator)
    generator.loader.exec_module(module)
    module.generate(tmp_path)

    for made in sorted((tmp_path / "trading_proto").iterdir()):
        committed = PROTO / "src" / "trading_proto" / made.name
        assert committed.read_text() == made.read_text(), f"{made.name} is stale: run `make proto`"


def test_names_and_numbers_are_the_contracts() -> None:
    event = trading_pb2.TradingEvent.DESCRIPTOR
    numbers = {field.name: field.number for field in event.fields}

    assert trading_pb2.DESCRIPTOR.services_by_name["TradingService"].full_name == "trading.TradingService"
    assert {
        "event_id": 1, "sequence": 2, "trading_account_id": 3, "type": 4, "occurred_at": 5, "broker_order": 10,
        "broker_position": 11, "broker_trade": 12, "intent_action": 13, "control": 14, "account": 15,
        "heartbeat": 20, "replay_complete": 21,
    }.items() <= numbers.items()  # fmt: skip
    assert trading_pb2.EventType.items() == [
        ("EVENT_TYPE_UNSPECIFIED", 0),
        ("EVENT_TYPE_BROKER_ORDER", 1),
        ("EVENT_TYPE_BROKER_POSITION", 2),
        ("EVENT_TYPE_BROKER_TRADE", 3),
        ("EVENT_TYPE_INTENT_ACTION", 4),
        ("EVENT_TYPE_CONTROL", 5),
        ("EVENT_TYPE_ACCOUNT", 6),
        ("EVENT_TYPE_REFUSAL", 7),
    ]
    assert [field.name for field in trading_pb2.BrokerOrder.DESCRIPTOR.fields] == [
        "intent_id", "broker_order_id", "symbol", "order_side", "order_kind", "status", "quantity", "filled_quantity",
        "leaves_quantity", "average_fill_price", "limit_price", "stop_price", "reason_code", "reason", "execution_id",
        "last_quantity", "last_price", "outcome", "reasons",
    ]  # fmt: skip
    *texts, _reasons = trading_pb2.BrokerOrder.DESCRIPTOR.fields
    assert all(field.type == FieldDescriptor.TYPE_STRING for field in texts)
