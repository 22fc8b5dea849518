"""The commands and programs of a page of the manual, as a script that a shell runs from top to bottom."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from covering_tests import BLOCKS, COMMANDS, ROOT

MANUAL = ROOT / "docs" / "manual"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(\$ )?(\w+=\S+ )*(tip|make|curl|python|pip|docker|docker-compose) ", re.MULTILINE)
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
        return self.command.startswith(tuple(COMMANDS))

    def missing_in(self, output: str) -> list[str]:
        printed = alike(output)
        return [line for line in self.shown if alike(line) not in printed]


def alike(text: str) -> str:
    return _VARYING.sub("#", text).strip()


def pages() -> list[Path]:
    """Those that are written for the manual, in reading order."""
    return [page for page in _served() if page.parent == MANUAL]


def reference_pages() -> list[Path]:
    """Further documents that the manual serves."""
    return [page for page in _served() if page.parent != MANUAL]


def _served() -> list[Path]:
    from console.manual_pages import IN_ORDER

    return [ROOT / page.file for page in IN_ORDER]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each."""
    return [(language, text) for language, text in _BLOCK.findall(page.read_text())]


def steps(page: Path) -> Iterator[Step]:
    for language, text in blocks(page):
        if language == "console":
            yield from _typed(text)
        elif language == "python" and not text.startswith(covered_blocks(page)):
            yield _program(text)


def covered_blocks(page: Path) -> tuple[str, ...]:
    """How those blocks of the page begin that a test of their own covers."""
    return tuple(BLOCKS.get(str(page.relative_to(ROOT)), ()))


def is_left_out(page: Path, language: str, text: str) -> bool:
    """Whether it can be run, and nobody runs it: neither this page's own test nor one that is named for it."""
    return not language and bool(_COMMAND.search(text)) and not text.startswith(covered_blocks(page))


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
