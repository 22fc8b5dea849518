"""The stream's schema: well-formed, not broken by a change, and the stubs are made from it."""

import importlib.util
import subprocess
import sys
import zipfile
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
        ("string reason_code = 13", "string reason_word = 13"),
        ("returns (stream TradingEvent)", "returns (TradingEvent)"),
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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a user installs it."""
    into = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(into), str(PROTO)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    [made] = into.iterdir()
    return made


def test_the_package_holds_stubs_types_and_schema_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        names = {name for name in content.namelist() if ".dist-info/" not in name}
        assert content.read("trading_proto/trading.proto") == (PROTO / "trading.proto").read_bytes()

    stubs = {"__init__.py", "trading_pb2.py", "trading_pb2.pyi", "trading_pb2_grpc.py", "trading_comments.py"}
    assert names == {f"trading_proto/{name}" for name in (*stubs, "py.typed", "trading.proto")}


def test_the_package_works_without_the_platform(wheel: Path) -> None:
    """In isolated mode no other path of this checkout counts; grpcio and protobuf are all that it imports."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import trading_proto.trading_pb2_grpc as made; "
        "print(made.__file__, 'chassis' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program, wheel], capture_output=True, text=True, check=False)

    assert done.stdout.split() == [f"{wheel}/trading_proto/trading_pb2_grpc.py", "False"], done.stderr


def test_the_changelog_knows_the_version(wheel: Path) -> None:
    version = wheel.name.split("-")[1]

    assert f"## {version}" in (PROTO / "CHANGELOG.md").read_text()


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
        "last_quantity", "last_price", "outcome", "reasons", "trail_amount", "trail_percent",
        "notional",
    ]  # fmt: skip
    texts = [field for field in trading_pb2.BrokerOrder.DESCRIPTOR.fields if field.name != "reasons"]
    assert all(field.type == FieldDescriptor.TYPE_STRING for field in texts)
