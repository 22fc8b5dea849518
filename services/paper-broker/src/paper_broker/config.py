"""Every environment variable the process reads, with its default and meaning."""

import csv
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TypeVar

from paper_broker.model.prices import Quote

T = TypeVar("T")
IN_MEMORY = ":memory:"
TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,}", re.ASCII)
DECIMAL = re.compile(r"[0-9]{1,18}(\.[0-9]{1,9})?", re.ASCII)


class BadConfig(Exception):
    """A variable that cannot be used; its message is one line for the operator."""


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError
    return port


def _millis(text: str) -> float:
    millis = int(text)
    if not 0 <= millis <= 86_400_000:
        raise ValueError
    return millis / 1000


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def decimal(text: str) -> Decimal:
    """A plain decimal: no exponent, no sign, no NaN, at most nine places."""
    if not DECIMAL.fullmatch(text):
        raise ValueError
    return Decimal(text)


def _size(text: str) -> Decimal | None:
    return decimal(text) or None


def _prices(text: str) -> str:
    if text not in ("walk", "fixed") and not text.startswith("file:"):
        raise ValueError
    return text


@dataclass(frozen=True)
class Config:
    """See README.md for the table; the defaults here are the only ones."""

    host: str = "127.0.0.1"
    port: int = 8081
    data: str = ".tip/paper-broker"
    seed: str | None = None
    prices: str = "walk"
    tick_seconds: float = 1.0
    quote_size: Decimal | None = None
    cash: Decimal = Decimal(100_000)
    day_seconds: int = 86_400
    hang_seconds: float = 30.0
    slow_seconds: float = 2.0
    settle_seconds: float = 0.25
    rate_limit_first: int = 2
    operator_token: str = field(default="", repr=False)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> "Config":
        def read(name: str, default: T, parse: Callable[[str], T], meaning: str) -> T:
            text = environ.get(name, "").strip()
            if not text:
                return default
            try:
                return parse(text)
            except (ValueError, InvalidOperation):
                raise BadConfig(f"{name} is {text!r}, but must be {meaning}") from None

        return cls(
            host=read("PAPER_BROKER_HOST", cls.host, str, "an address"),
            port=read("PAPER_BROKER_PORT", cls.port, _port, "a port, 0 to 65535 (0: any free one)"),
            data=read("PAPER_BROKER_DATA", cls.data, str, "a directory, or :memory:"),
            seed=read("PAPER_BROKER_SEED", cls.seed, str, "any text"),
            prices=read("PAPER_BROKER_PRICES", cls.prices, _prices, "walk, fixed or file:<path of a csv>"),
            tick_seconds=read("PAPER_BROKER_TICK_MILLIS", cls.tick_seconds, _millis, MILLIS),
            quote_size=read("PAPER_BROKER_QUOTE_SIZE", cls.quote_size, _size, "a quantity (0: unlimited)"),
            cash=read("PAPER_BROKER_CASH", cls.cash, decimal, "an amount of money"),
            day_seconds=read("PAPER_BROKER_DAY_SECONDS", cls.day_seconds, _positive, "a number of seconds from 1"),
            hang_seconds=read("PAPER_BROKER_HANG_MILLIS", cls.hang_seconds, _millis, MILLIS),
            slow_seconds=read("PAPER_BROKER_SLOW_MILLIS", cls.slow_seconds, _millis, MILLIS),
            settle_seconds=read("PAPER_BROKER_SETTLE_MILLIS", cls.settle_seconds, _millis, MILLIS),
            rate_limit_first=read("PAPER_BROKER_RATE_LIMIT_FIRST", cls.rate_limit_first, _positive, "a number from 1"),
            operator_token=_token(environ.get("PAPER_BROKER_OPERATOR_TOKEN", "").strip()),
        )

    @property
    def in_memory(self) -> bool:
        return self.data == IN_MEMORY

    def tape(self) -> list[Quote]:
        """The quotes of the price file, in its order; empty when prices do not come from a file."""
        if not self.prices.startswith("file:"):
            return []
        path = Path(self.prices.removeprefix("file:"))
        try:
            with path.open(newline="", encoding="utf-8") as file:
                return [_quote(row) for row in csv.DictReader(file)]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadConfig(
                f"PAPER_BROKER_PRICES names {path}, which is not a csv with symbol,bid,ask[,bid_size,ask_size]: "
                f"{type(error).__name__} {error}"
            ) from None


def _token(text: str) -> str:
    """A secret, so a bad one is not repeated."""
    if text and not TOKEN.fullmatch(text):
        raise BadConfig("PAPER_BROKER_OPERATOR_TOKEN must be 16 or more of A-Z a-z 0-9 . _ ~ + / = -")
    return text


MILLIS = "milliseconds, 0 to 86400000"


def _quote(row: Mapping[str, str]) -> Quote:
    return Quote(
        row["symbol"],
        decimal(row["bid"]),
        decimal(row["ask"]),
        _size(row.get("bid_size") or "0"),
        _size(row.get("ask_size") or "0"),
    )
