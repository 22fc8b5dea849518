"""Every block of commands and every program of the manual, run on a whole platform as a reader would, in order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from manual_page import COVERED_BY, MANUAL, Step, blocks, pages, steps
from sdk_platform import Platform
from tip_caller import NONE_OF_MINE

ROOT = MANUAL.parents[1]
BEGIN = "@@ step"
DEFAULT_ADDRESS = "http://127.0.0.1:8080"


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
@pytest.mark.parametrize("page", [ROOT / "README.md", *pages()], ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_every_step_of_a_page_works(reader: Reader, page: Path) -> None:
    wanted = [step for step in steps(page) if not step.is_covered]

    outputs = reader.follow(wanted) if wanted else []

    missing = [(step.command, step.missing_in(output), output) for step, output in zip(wanted, outputs, strict=True)]
    assert [row for row in missing if row[1]] == []


def test_what_is_covered_is_run_there_and_still_on_a_page() -> None:
    typed = [step.command for page in pages() for step in steps(page)]

    for command, (test, word) in COVERED_BY.items():
        assert any(line.startswith(command) for line in typed), command
        assert word in (ROOT / test).read_text(), f"{test} does not run {command}"


def test_every_page_is_in_the_navigation_and_holds_nothing_that_is_not_run() -> None:
    assert {page.name for page in pages()} == {file.name for file in MANUAL.glob("*.md")}
    assert {language for page in pages() for language, _ in blocks(page)} <= {"console", "python"}
