"""Makes the stubs from trading.proto: `make proto`. Another folder may be named to compare with."""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

HERE = Path(__file__).parent


def generate(into: Path) -> None:
    """The messages, their types, the client stub and the comments, in the package `trading_proto` under this folder."""
    # The name before the equals sign makes the stubs import each other as parts of the package.
    outputs = [f"--{kind}_out={into}" for kind in ("python", "pyi", "grpc_python")]
    with tempfile.TemporaryDirectory() as place:
        described = Path(place) / "described"
        outputs += [f"--descriptor_set_out={described}", "--include_source_info"]
        code = protoc.main(
            ["protoc", f"-Itrading_proto={HERE}", f"-I{_well_known()}", *outputs, str(HERE / "trading.proto")]
        )
        if code:
            raise SystemExit(code)
        [schema] = FileDescriptorSet.FromString(described.read_bytes()).file
    (into / "trading_proto" / "trading_comments.py").write_text(_COMMENTS.format(_literal(dict(comments(schema)))))


_COMMENTS = """# Made from trading.proto by generate.py; `make proto` makes it anew. Stubs leave comments out.
# ruff: noqa: E501
FIELDS: dict[str, str] = {}
"""


def _literal(texts: dict[str, str]) -> str:
    lines = [f"    {json.dumps(name)}: {json.dumps(text)},\n" for name, text in texts.items()]
    return "{\n" + "".join(lines) + "}"


def comments(schema: FileDescriptorProto) -> Iterator[tuple[str, str]]:
    """What the schema says of every field of a message, under `Message.field`."""
    texts = {tuple(place.path): " ".join(place.leading_comments.split()) for place in schema.source_code_info.location}
    for position, message in enumerate(schema.message_type):
        for number, field in enumerate(message.field):
            path = (FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER, position, DescriptorProto.FIELD_FIELD_NUMBER, number)
            yield f"{message.name}.{field.name}", texts[path]


def _well_known() -> Path:
    return Path(protoc.__file__).parent / "_proto"


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "src")
