"""The synchronous client and the messages are what the generator makes."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tip_client as tip

HERE = Path(__file__).parents[1]
PACKAGE = HERE / "src" / "tip_client"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    subprocess.run([sys.executable, HERE / "generate.py", folder], check=True)
    return folder


@pytest.mark.parametrize("part", ["_sync", "_proto"])
def test_what_is_generated_is_not_stale(made: Path, part: str) -> None:
    files = {file.name: file.read_text() for file in (made / part).iterdir()}
    kept = {file.name: file.read_text() for file in (PACKAGE / part).iterdir() if file.suffix in (".py", ".pyi")}
    kept.pop("__init__.py" if part == "_proto" else "", None)

    assert files == kept, "make client"


def test_nothing_asynchronous_is_left_in_the_synchronous_client() -> None:
    words = ("async", "await", "Async", "aclose", "asyncio")
    left = [(file.name, word) for file in (PACKAGE / "_sync").glob("*.py") for word in words if word in body(file)]

    assert left == []


def body(file: Path) -> str:
    """Without the line that says where it comes from."""
    return file.read_text().partition("\n")[2]


def test_no_file_is_long() -> None:
    files = [*PACKAGE.rglob("*.py")]

    assert [file.name for file in files if "_pb2" not in file.name and len(file.read_text().splitlines()) > 300] == []


def test_the_client_names_its_version() -> None:
    assert tip.__version__ == version("tip-client")
