"""Makes the synchronous client from the asynchronous one, and the messages of the stream: `make client`.

Another folder may be named to compare with.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE / "src" / "tip_client"
PROTO = HERE.parents[1] / "proto"
HEADER = "# Made from _async/{name} by generate.py; `make client` makes it anew.\n"

_RULES = (
    (r"\basync (?=def |with |for )", ""),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bgrpc\.aio\.", "grpc."),
    (r"\btip_client\._async\b", "tip_client._sync"),
)
_NAMES = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "aclose": "close",
    "aiter": "iter",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "aread": "read",
    "asynccontextmanager": "contextmanager",
    "asyncio": "time",
    "enter_async_context": "enter_context",
    "ready_in_thread": "ready",
}


def synchronous(text: str) -> str:
    """The same module without an event loop."""
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return re.sub(r"\b\w+\b", lambda word: _NAMES.get(word[0], word[0]), text)


def generate(package: Path) -> None:
    """Write `_sync` and `_proto` into this folder."""
    (package / "_sync").mkdir(parents=True, exist_ok=True)
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        made = synchronous(source.read_text())
        if source.name == "__init__.py":
            made = '"""The synchronous client."""\n'
        (package / "_sync" / source.name).write_text(HEADER.format(name=source.name) + made)
    ruff = ["ruff", "format", "--quiet", "--isolated", "--line-length", "120", str(package / "_sync")]
    subprocess.run([sys.executable, "-m", *ruff], check=True)
    _messages(package / "_proto")


def _messages(folder: Path) -> None:
    """The platform's own stubs, file name and all: a process may hold both, and protobuf wants one of each name."""
    sys.path.insert(0, str(PROTO))
    from generate import generate as generate_stubs

    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        generate_stubs(Path(made))
        for suffix in (".py", ".pyi"):
            shutil.copy(Path(made) / "trading_proto" / f"trading_pb2{suffix}", folder)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
