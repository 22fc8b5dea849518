"""Makes the stubs from trading.proto: `make proto`. Another folder may be named to compare with."""

import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).parent


def generate(into: Path) -> None:
    """The messages, their types and the client stub, in the package `trading_proto` under this folder."""
    # The name before the equals sign makes the stubs import each other as parts of the package.
    outputs = [f"--{kind}_out={into}" for kind in ("python", "pyi", "grpc_python")]
    code = protoc.main(
        ["protoc", f"-Itrading_proto={HERE}", f"-I{_well_known()}", *outputs, str(HERE / "trading.proto")]
    )
    if code:
        raise SystemExit(code)


def _well_known() -> Path:
    return Path(protoc.__file__).parent / "_proto"


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "src")
