"""Reading what a broker answers: bounded, and never trusted.

What is not as agreed is a broken answer, which proves nothing about what was done: its outcome is unknown. So every
reading stands inside `understood`.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tip_brokers.protocol import BROKEN_ANSWER, OutcomeUnknown

LONGEST_WORD = 256  # of an id or a symbol
LONGEST_REASON = 200
LARGEST_EXPONENT = 30  # of a number, either way: written out, a larger one is mostly zeros
MISREAD = (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError, RecursionError)
"""What is raised by reading something that is not as agreed."""


class understood:  # noqa: N801 - reads as a word of the language
    """Around the reading of an answer: one that breaks the contract proves nothing about what was done."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MISREAD):
            raise OutcomeUnknown(BROKEN_ANSWER) from None


def parse(content: str | bytes) -> Any:
    """JSON in UTF-8. What no database keeps is a broken answer: here U+0000, in `parse_word` half a surrogate pair."""
    with understood():
        text = content.decode() if isinstance(content, bytes) else content
        if "\\u0000" in text:
            raise ValueError
        return json.loads(text)


def plain(value: Decimal | None) -> str | None:
    """A number as the broker takes it."""
    return None if value is None else format(value, "f")


def timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_moment(text: str) -> datetime:
    """With its zone. Of nanoseconds we keep what a datetime can."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment


def parse_word(value: object) -> str:
    if value is None:
        raise ValueError
    text = str(value)
    text.encode()  # fails for half of a surrogate pair
    if len(text) > LONGEST_WORD:
        raise ValueError
    return text


def reason(value: object) -> str:
    """The broker's message for people, as far as it can be stored: a refusal counts whatever its wording is."""
    return str(value)[:LONGEST_REASON].encode(errors="replace").decode().replace("\0", "\ufffd")


def parse_word_or_none(value: object) -> str | None:
    return None if value is None else parse_word(value)


def parse_decimal(value: object) -> Decimal | None:
    if value is None or value == "":
        return None
    number = Decimal(parse_word(value))
    if not number.is_finite() or abs(number.adjusted()) > LARGEST_EXPONENT:
        raise ValueError
    return number


def parse_price(value: object) -> Decimal | None:
    """None for what is not above zero: so a side of the book that is empty, or an asset without a price, is written."""
    number = parse_decimal(value)
    return number if number is not None and number > 0 else None


def parse_amount(value: object) -> Decimal:
    number = parse_decimal(value)
    if number is None:
        raise ValueError
    return number
