"""Frozen records out of JSON: what a dataclass declares is read, what it does not know is passed over."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime, time
from decimal import Decimal
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tip_client.errors import UnexpectedAnswer

T = TypeVar("T")
Reader = Callable[[Any], Any]

KEY = "key"
"""In a field's metadata: its name in the JSON, where that is no name in Python."""

_UNREADABLE = (KeyError, TypeError, ValueError, ArithmeticError, AttributeError)


def parse(kind: type[T], data: Any) -> T:
    """The record that the JSON describes. What does not fit is not repeated in the error: it may hold a secret."""
    try:
        return cast("T", _reader(cast("Any", kind))(data))
    except _UNREADABLE as error:
        fault = f"The answer is no {kind.__name__} ({type(error).__name__})."
        raise UnexpectedAnswer(fault) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    """Protobuf writes numbers of 64 bits as strings."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _decimal(value: Any) -> Decimal:
    return Decimal(_text(value))


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _anything(value: Any) -> Any:
    return value


_PLAIN: dict[Any, Reader] = {
    str: _text,
    int: _whole,
    bool: _flag,
    float: float,
    Decimal: _decimal,
    datetime: _moment,
    time: time.fromisoformat,
    Any: _anything,
}


@cache
def _reader(hint: Any) -> Reader:
    """What reads a value of this type; made once for each."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _optional(arguments)
    if origin is tuple:
        return _several(_reader(arguments[0]))
    if origin is not None:
        return _mapping
    if hasattr(hint, "from_json"):
        return cast("Reader", hint.from_json)
    return _record(hint) if is_dataclass(hint) else cast("Reader", hint)


def _optional(arguments: tuple[Any, ...]) -> Reader:
    [inner] = [_reader(argument) for argument in arguments if argument is not type(None)]
    return lambda value: None if value is None else inner(value)


def _several(item: Reader) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError
        return tuple(map(item, value))

    return read


def _record(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    columns = [
        (field.name, field.metadata.get(KEY, field.name), _reader(hints[field.name]), _has_default(field))
        for field in fields(kind)
    ]

    def read(data: Any) -> Any:
        given = _mapping(data)
        value_of = given.get
        return kind(**{
            name: reader(value_of(key)) for name, key, reader, may_miss in columns if not may_miss or key in given
        })  # fmt: skip

    return read


def _has_default(field: Any) -> bool:
    """Then it keeps that where the answer does not have it: a platform may be older than this client."""
    return field.default is not MISSING or field.default_factory is not MISSING
