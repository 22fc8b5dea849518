"""A request as a value: what is sent, how its answer is read, and whether it may be sent again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from uuid import uuid4

from tip_client.errors import ConfigurationError
from tip_client.headers import is_header_value
from tip_client.records import parse

T = TypeVar("T")


class Repeat(Enum):
    """What a second arrival of the same request does."""

    QUESTION = "question"
    """Nothing, like the first: it only asks."""
    HARMLESS = "harmless"
    """Nothing more than the first, as with PUT and DELETE."""
    BY_KEY = "by_key"
    """Nothing more than the first, because it carries an Idempotency-Key."""
    NEVER = "never"
    """It would be done twice, or refused for what the first has changed."""


@dataclass(frozen=True)
class Request(Generic[T]):
    """One request to the API whose answer is a T."""

    method: str
    path: str
    read: Callable[[Any], T]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    repeat: Repeat = Repeat.QUESTION
    idempotency_key: str | None = None
    if_match: int | None = None
    form: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def changes(self) -> bool:
        """Whether it is more than a question."""
        return self.repeat is not Repeat.QUESTION


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list, and the cursor of the next one."""

    data: tuple[T, ...]
    next_cursor: str | None


def at(template: str, *names: str) -> str:
    """The path with these names in it, each as one segment, whatever it holds."""
    if any(name in ("", ".", "..") for name in names):
        raise ConfigurationError(f"A name in {template} is empty.")
    return template.format(*(quote(name, safe="") for name in names))


def get(path: str, kind: type[T], **query: Any) -> Request[T]:
    return Request("GET", path, partial(parse, kind), texts(query))


def ask(path: str, kind: type[T], body: Mapping[str, Any], **query: Any) -> Request[T]:
    """A question that needs a body."""
    return Request("POST", path, partial(parse, kind), texts(query), body)


def listed(path: str, kind: type[T], page_size: int | None = None, **query: Any) -> Request[Page[T]]:
    return Request("GET", path, partial(_page, kind), texts({**query, "limit": page_size}))


def following(request: Request[Page[T]], page: Page[T]) -> Request[Page[T]] | None:
    """The request for the next page; None after the last."""
    if page.next_cursor is None:
        return None
    return replace(request, query={**request.query, "next_cursor": page.next_cursor})


def change(
    method: str, path: str, kind: type[T], body: Mapping[str, Any] | None = None, if_match: int | None = None
) -> Request[T]:
    """A change that may arrive twice, unless it names the version that it changes: then the second is refused."""
    repeat = Repeat.HARMLESS if if_match is None else Repeat.NEVER
    return Request(method, path, partial(parse, kind), body=body, repeat=repeat, if_match=if_match)


def delete(path: str, if_match: int | None = None) -> Request[None]:
    repeat = Repeat.HARMLESS if if_match is None else Repeat.NEVER
    return Request("DELETE", path, _nothing, repeat=repeat, if_match=if_match)


def create(path: str, kind: type[T], body: Mapping[str, Any] | None = None) -> Request[T]:
    """A creation to which the API has no idempotency key."""
    return Request("POST", path, partial(parse, kind), body=body, repeat=Repeat.NEVER)


def command(path: str, kind: type[T], body: Mapping[str, Any], key: str | None) -> Request[T]:
    """A command with an idempotency key: the caller's, or one of its own."""
    once = str(uuid4()) if key is None else key
    if not is_header_value(once):
        raise ConfigurationError("An idempotency key is 1 to 255 printable ASCII characters.")
    return Request("POST", path, partial(parse, kind), body=body, repeat=Repeat.BY_KEY, idempotency_key=once)


def given(**values: Any) -> dict[str, Any]:
    """Those that are not None, as JSON has them."""
    return {name.rstrip("_"): plain(value) for name, value in values.items() if value is not None}


def texts(query: Mapping[str, Any]) -> dict[str, str]:
    """The same for a query."""
    found = given(**query)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """The value as JSON has it: decimals and moments are strings there."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        raise ConfigurationError("A moment needs a time zone: datetime.now(UTC), for example.")
    return value.isoformat()


def _page(kind: type[T], data: Any) -> Page[T]:
    found = parse(_AnyPage, data)
    return Page(tuple(parse(kind, item) for item in found.data), found.next_cursor)


@dataclass(frozen=True)
class _AnyPage:
    data: tuple[Any, ...]
    next_cursor: str | None


def _nothing(_data: Any) -> None:
    return None
