"""Queries that forget a condition: what a test plants to see whether row-level security holds where code does not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event


@contextmanager
def forgetting(engine: Engine, condition: str, instead: str = "true") -> Iterator[list[str]]:
    """Every statement of this engine loses the condition; the statements that did."""
    changed: list[str] = []

    def forget(_c: Any, _cursor: Any, statement: str, parameters: Any, _x: Any, _m: bool) -> tuple[str, Any]:
        if condition not in statement:
            return statement, parameters
        changed.append(statement)
        return statement.replace(condition, instead), parameters

    event.listen(engine, "before_cursor_execute", forget, retval=True)
    try:
        yield changed
    finally:
        event.remove(engine, "before_cursor_execute", forget)
