"""What a caller names: by its name, its id, or the beginning of the id."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import click

from tip.exits import WRONG_USAGE, Failure

SHORTEST = 4
"""Characters of an id that say which is meant."""


class Thing(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Thing)


def find(things: Iterable[T], text: str, kind: str, name_of: Callable[[T], str], *, where: str | None = None) -> T:
    """The one that is meant; `kind` is its word, such as `key`, and `tip keys` or `where` lists them."""
    found = [thing for thing in things if name_of(thing) == text or _begins(thing.id, text)]
    hint = f"`{where or f'tip {kind}s'}` lists them"
    if not found:
        raise Failure(f"there is no {kind} {text!r}", code="not_found", hint=hint)
    if len(found) > 1:
        raise Failure(f"{len(found)} {kind}s are named {text!r} or have an id that begins so", WRONG_USAGE, hint=hint)
    return found[0]


def _begins(identifier: str, text: str) -> bool:
    return len(text) >= SHORTEST and identifier.startswith(text.lower())


def not_empty(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """An empty word, such as that of a variable that is not set, must not mean whatever is the default."""
    if value == "":
        raise click.BadParameter("is empty", ctx, parameter)
    return value
