"""JSON as the platform accepts and writes it: anything a careful reader would call ambiguous is refused.

The standard parser takes duplicate keys, NaN, 1e400, lone surrogates, NUL characters and any depth the stack bears.
"""

import json
import math
from collections.abc import Callable
from typing import Any, NoReturn

import orjson

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32


class BadJson(ValueError):
    """The text is not JSON as accepted here; the message says why and repeats nothing of the text."""


def loads(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadJson("The body is not UTF-8.") from None
    if text.startswith("\ufeff"):
        raise BadJson("The body starts with a byte order mark.")
    _check_depth(text)
    try:
        value = _DECODER.decode(text)
    except BadJson:
        raise
    except (ValueError, RecursionError):
        raise BadJson("The body is not valid JSON.") from None
    if "\\u" in text:  # only an escape can smuggle in what the decoding above has not seen
        _check_text(value)
    return value


def dumps(value: Any) -> bytes:
    """JSON of what the platform itself has made: an object that JSON has no word for is a fault of ours."""
    return orjson.dumps(value)


def dumps_ascii(value: Any, default: Callable[[Any], Any]) -> bytes:
    """Compact JSON in ASCII of anything at all: by the standard encoder what the fast one cannot write."""
    try:
        text = orjson.dumps(value, default, orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:  # such as a number of more than 64 bits, or half a surrogate pair
        text = b"\xff"
    return text if text.isascii() else json.dumps(value, default=default, separators=(",", ":")).encode()


def _check_depth(text: str) -> None:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    in_string = escaped = False
    for character in text:
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise BadJson(f"The body is nested deeper than {MAX_DEPTH}.")
        elif character in "}]":
            depth -= 1


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise BadJson("An object has the same key twice.")
    return members


def _refuse_constant(_name: str) -> NoReturn:
    raise BadJson("NaN and Infinity are not JSON.")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise BadJson("A number is out of range.")
    return number


def _whole(digits: str) -> int:
    _finite(digits)
    return int(digits)


def _check_text(value: Any) -> None:
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise BadJson("A string holds NUL or half a surrogate pair.")
    elif isinstance(value, dict):
        for key, member in value.items():
            _check_text(key)
            _check_text(member)
    elif isinstance(value, list):
        for member in value:
            _check_text(member)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
)
