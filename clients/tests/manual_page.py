"""The commands and programs of a page of the manual, as a script that a shell runs from top to bottom."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MANUAL = Path(__file__).parents[2] / "docs" / "manual"
COVERED_BY = {
    "make up": ("clients/conftest.py", '"tip", "start"'),
    "tip broker check paper": ("shared/testing/tests/test_broker_check.py", 'check("paper")'),
    "tip login --url": ("services/identity/tests/test_login_at_providers.py", '"login"'),
    "TIP_HOME=~/tip TIP_DEMO=no make up": ("tests-e2e/test_first_run.py", '"TIP_DEMO": "no"'),
    "TIP_HOME=~/tip tip init": ("tests-e2e/test_first_run.py", '"init"'),
    "tip login": ("tests-e2e/test_first_run.py", '"login"'),
    "tip people invite": ("tests-e2e/test_first_run.py", '"people", "invite"'),
    "make stop": ("clients/conftest.py", '"tip", "stop"'),
    "TIP_HOME=~/restored tip epoch list": ("clients/tests/test_live_backup.py", '"epoch"'),
    "TIP_HOME=~/restored tip restore": ("clients/tests/test_live_backup.py", '"restore"'),
    "TIP_HOME=~/restored tip start": ("clients/conftest.py", '"tip", "start"'),
}
"""Beginnings of commands that start a platform or need a person, and the test that runs each, by what is in it."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# (\w+\.py)\n")
_VARYING = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]+)?|[\d.]+( ms| s)?|before-upgrade|'\w+'")
"""Ids, figures and how long something took."""


@dataclass
class Step:
    """Something to run, and the lines that the page shows of its output."""

    command: str
    shown: list[str] = field(default_factory=list)

    @property
    def is_covered(self) -> bool:
        return self.command.startswith(tuple(COVERED_BY))

    def missing_in(self, output: str) -> list[str]:
        printed = alike(output)
        return [line for line in self.shown if alike(line) not in printed]


def alike(text: str) -> str:
    return _VARYING.sub("#", text).strip()


def pages() -> list[Path]:
    """In reading order."""
    from console.manual_pages import FOLDER, IN_ORDER

    return [MANUAL / Path(page.file).name for page in IN_ORDER if page.file.startswith(f"{FOLDER}/")]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each."""
    return [(language, text) for language, text in _BLOCK.findall(page.read_text())]


def steps(page: Path) -> Iterator[Step]:
    for language, text in blocks(page):
        if language == "console":
            yield from _typed(text)
        elif language == "python":
            yield _program(text)


def _typed(text: str) -> Iterator[Step]:
    step = None
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            if step:
                yield step
            step = Step(line.removeprefix("$ "))
        else:
            assert step, f"a block begins with a command: {line}"
            step.shown.append(line)
    if step:
        yield step


def _program(text: str) -> Step:
    """One that has a name is saved, and run by a command of the page."""
    if named := _NAME.match(text):
        return Step(f"printf %s {shlex.quote(text)} > {named[1]}")
    return Step(f"python -c {shlex.quote(text)}")
