"""Prepared statements, and the transaction that store functions run them in."""

from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

Row = Any
"""A named tuple: one attribute per column of the statement."""


class Statement(NamedTuple):
    """A statement with $1 … $n, prepared on a connection when it is first used there."""

    name: str
    types: tuple[str, ...]
    sql: str

    @property
    def prepare(self) -> str:
        return f"PREPARE {self.name} ({', '.join(self.types)}) AS {self.sql}"

    @property
    def execute(self) -> str:
        # The driver writes the elements of an array without their type, so an array needs a cast.
        values = (f"%s::{type_}" if type_.endswith("[]") else "%s" for type_ in self.types)
        return f"EXECUTE {self.name} ({', '.join(values)})"


class Transaction(Protocol):
    """The first argument of every store function that runs prepared statements."""

    def read(self, statement: Statement, values: Sequence[Any]) -> list[Row]: ...
    def write(self, statement: Statement, values: Sequence[Any]) -> list[Row]: ...


@cache
def row_maker(columns: tuple[str, ...]) -> Callable[[Sequence[Any]], Row]:
    """Makes rows of a statement with these columns."""
    row_type: Any = namedtuple("Row", columns, rename=True)  # type: ignore[misc] # columns of a statement
    make_row: Callable[[Sequence[Any]], Row] = row_type._make
    return make_row
