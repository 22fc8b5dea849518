"""Prints results: tables and colour on a terminal, plain columns in a pipe, JSON on request."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from io import TextIOWrapper
from typing import Any, TypeVar

import click

from tip.plain import json_text, plain_table, printable

T = TypeVar("T")
Row = Sequence[str]

_GOOD = frozenset({"FILLED", "COMPLETED", "ACTIVE", "ALLOWED", "BUY", "active", "enabled", "✓"})
_BAD = frozenset({"REJECTED", "DENIED", "FAILED", "REFUSED", "HALTED", "SELL", "disabled", "invalid", "revoked", "✗"})
_PASSING = frozenset(
    {"PENDING", "SUBMITTED", "PENDING_REPLACE", "PENDING_CANCEL", "PARTIALLY_FILLED", "REDUCING", "closing", "!"}
)


class Output:
    """Standard output, as this caller wants it."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.is_closed = sys.stdout is None
        """Nobody reads any more, or nobody ever did: what is done is done all the same."""
        self.is_terminal = bool(sys.stdout and sys.stdout.isatty())
        self.has_colour = self.is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    def document(self, value: Any) -> None:
        """One JSON document."""
        self._print(json_text(value, indent=2))

    def json_line(self, value: Any) -> None:
        """One of many, at once."""
        self._print(json_text(value))

    def line(self, text: str = "", mark: str = "") -> None:
        """A line for people; `mark` is ✓, ✗ or !."""
        shown = printable(text)
        self._print(f"{self.coloured(self.mark(mark))} {shown}" if mark else shown)

    def table(self, titles: Row, rows: Iterable[Row], *, right: Iterable[str] = (), empty: str = "none") -> None:
        """Columns; those that `right` names hold numbers."""
        cells = [[printable(cell) for cell in row] for row in rows]
        if not cells:
            self.line(empty)
        elif self.is_terminal:
            _rich_console().print(rich_table(titles, cells, right))
        else:
            self._print("\n".join(plain_table(titles, cells, right)))

    def records(
        self,
        found: Iterable[T],
        titles: Row,
        row_of: Callable[[T], Row],
        *,
        right: Iterable[str] = (),
        empty: str = "none",
    ) -> None:
        """A list of the API's: its records for programs, a row of each for people."""
        if self.as_json:
            self.document({"data": list(found)})
        else:
            self.table(titles, map(row_of, found), right=right, empty=empty)

    def result(self, record: Any, line: str, mark: str = "✓") -> None:
        """What was done: the record for programs, a line for people."""
        if self.as_json:
            self.document(record)
        else:
            self.line(line, mark=mark)

    def raw(self, piece: bytes) -> None:
        """A piece of a file, as it is."""
        self._print(piece, nl=False)

    def _print(self, text: str | bytes, *, nl: bool = True) -> None:
        """A reader that has gone changes nothing about what was done, so the exit code stays that of the command."""
        try:
            click.echo(text, nl=nl)
        except BrokenPipeError:
            self.close()

    def close(self) -> None:
        """Nobody reads any more. Python flushes once more at the end, which would fail."""
        self.is_closed = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def coloured(self, word: str) -> str:
        colour = colour_of(word)
        return click.style(word, fg=colour) if self.has_colour and colour else word

    def mark(self, mark: str) -> str:
        """The mark, or a letter where the terminal's encoding has none."""
        try:
            mark.encode(sys.stdout.encoding if sys.stdout else "ascii")
        except UnicodeEncodeError:
            return {"✓": "ok", "✗": "x"}.get(mark, mark)
        return mark


def replace_what_cannot_be_encoded() -> None:
    """A name that the terminal's encoding does not have is no reason to fail after the order was sent."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def colour_of(word: str) -> str | None:
    colours = {"green": _GOOD, "red": _BAD, "yellow": _PASSING}
    return next((colour for colour, words in colours.items() if word in words), None)


def rich_table(titles: Row, rows: Iterable[Row], right: Iterable[str] = ()) -> Any:
    from rich.table import Table
    from rich.text import Text

    table, numbers = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0)), set(right)
    for title in titles:
        table.add_column(title, justify="right" if title in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=colour_of(cell) or "") for cell in row))
    return table


def _rich_console() -> Any:
    from rich.console import Console

    return Console(highlight=False, markup=False)
