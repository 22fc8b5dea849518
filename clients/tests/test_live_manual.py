"""Every block of commands and every program of the manual, run on a whole platform as a reader would, in order."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from covering_tests import BLOCKS, COMMANDS, ROOT
from manual_page import MANUAL, Step, blocks, is_left_out, pages, reference_pages, steps
from sdk_platform import Platform
from tip_caller import NONE_OF_MINE

BEGIN = "@@ step"
DEFAULT_ADDRESS = "http://127.0.0.1:8080"
BEFORE = {
    "docs/mcp.md": (
        "export TIP_PROFILE=demo-admin",
        "tip accounts create desk --broker paper --environment live",
    ),
    "docs/statement.md": (f"export BASE={DEFAULT_ADDRESS} TIP_PROFILE=demo", "tip buy AAPL 1 --wait"),
}
"""What the reader of a reference page has done before: it begins in the middle."""


RUN = [ROOT / "README.md", *pages(), *(page for page in reference_pages() if any(steps(page)))]


@pytest.fixture(scope="module")
def reader(whole_platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> "Reader":
    return Reader(whole_platform, tmp_path_factory.mktemp("reader"))


class Reader:
    """Somebody with a checkout, a platform that runs, and a configuration that the pages fill."""

    def __init__(self, platform: Platform, folder: Path) -> None:
        self._folder, self._base = folder, platform.local["base_url"]
        (folder / ".tip").symlink_to(platform.home)
        (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
        kept = {name: value for name, value in os.environ.items() if name not in NONE_OF_MINE}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        configuration = {"TIP_HOME": str(platform.home), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config")}
        self._environment = {**kept, **configuration, "PATH": path, "NO_COLOR": "1"}

    def follow(self, wanted: list[Step]) -> list[str]:
        """What each step prints; none may fail."""
        lines = [f"echo '{BEGIN}'\n{self._here(step.command)}" for step in wanted]
        done = subprocess.run(
            ["bash", "-eo", "pipefail"],
            input="\n".join(lines),
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        outputs = done.stdout.split(f"{BEGIN}\n")[1:]
        assert done.returncode == 0, f"{wanted[len(outputs) - 1].command}\n{outputs[-1]}"
        return outputs

    def _here(self, command: str) -> str:
        """At the address of this platform, and with time for a busy machine."""
        return command.replace(DEFAULT_ADDRESS, self._base).replace("--wait", "--wait --timeout 90")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", RUN, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_step_of_a_page_works(reader: Reader, page: Path) -> None:
    before = [Step(command) for command in BEFORE.get(str(page.relative_to(ROOT)), ())]
    wanted = before + [step for step in steps(page) if not step.is_covered]

    outputs = reader.follow(wanted) if wanted else []

    missing = [(step.command, step.missing_in(output), output) for step, output in zip(wanted, outputs, strict=True)]
    assert [row for row in missing if row[1]] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_is_not_run_is_on_a_page_and_run_by_the_test_that_is_named(command: str) -> None:
    typed = [step.command for page in RUN for step in steps(page)]

    assert any(line.startswith(command) for line in typed)
    assert COMMANDS[command].is_so(), f"{COMMANDS[command]} does not run it"


@pytest.mark.parametrize("file", BLOCKS)
def test_a_block_that_is_not_run_is_on_its_page_and_done_by_the_test_that_is_named(file: str) -> None:
    written = [text for _, text in blocks(ROOT / file)]

    assert [begins for begins in BLOCKS[file] if not any(text.startswith(begins) for text in written)] == []
    assert [covering for covering in BLOCKS[file].values() if not covering.is_so()] == []


def test_what_a_test_does_not_do_covers_nothing() -> None:
    known = COMMANDS["tip people invite"]

    assert known.is_so()
    assert not replace(known, words=("tip", "people", "promote")).is_so()
    assert not replace(known, name="test_that_nobody_wrote").is_so()
    assert not replace(known, name="permissions").is_so(), "another function of the file does it"


def test_every_page_is_in_the_navigation_and_holds_nothing_that_is_not_run() -> None:
    assert {page.name for page in pages()} == {file.name for file in MANUAL.glob("*.md")}
    assert {language for page in pages() for language, _ in blocks(page)} <= {"console", "python"}
    every = [(page, block) for page in reference_pages() for block in blocks(page)]
    assert [(page.name, text) for page, (language, text) in every if is_left_out(page, language, text)] == []
