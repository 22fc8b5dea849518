"""Quotes and where they come from when nobody sets them: a random walk that depends on seed, symbol and step alone."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

CENT = Decimal("0.01")
HALF_SPREAD = CENT
LOWEST = Decimal("1.00")
LARGEST_STEP = 25  # cents
SCRIPTED_PRICE = Decimal("100.00")  # SIM. symbols stand still, so that a script knows its prices


def digest(*parts: object) -> bytes:
    """Sixteen bytes that depend on the parts alone: the only source of chance in the broker."""
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()


def identity(*parts: object) -> str:
    """A UUID that depends on the parts alone, so that a run can be repeated to the letter."""
    return str(UUID(bytes=digest(*parts), version=4))


def chance(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(digest(*parts)[:7], "big") / (1 << 56)


@dataclass(frozen=True, slots=True)
class Quote:
    """What can be traded now. A size of None is unlimited; executions use a size up until the next quote."""

    symbol: str
    bid: Decimal
    ask: Decimal
    bid_size: Decimal | None = None
    ask_size: Decimal | None = None
    step: int = 0
    pinned: bool = False  # set from outside: it no longer walks

    @property
    def middle(self) -> Decimal:
        return (self.bid + self.ask) / 2


@dataclass(frozen=True, slots=True)
class Walk:
    """Prices of symbols nobody quoted: an opening price from the symbol's name, then cents up or down per tick."""

    seed: str
    size: Decimal | None = None
    moving: bool = True

    def opening(self, symbol: str) -> Quote:
        if symbol.startswith("SIM."):
            return self._around(symbol, SCRIPTED_PRICE, 0)
        cents = 2_000 + int(chance(self.seed, "open", symbol) * 48_000)
        return self._around(symbol, cents * CENT, 0)

    def after(self, quote: Quote) -> Quote:
        """The next step. A pinned or scripted symbol keeps its price, but its size is whole again."""
        if quote.pinned:
            return quote
        step = quote.step + 1
        if not self.moving or quote.symbol.startswith("SIM."):
            return self._around(quote.symbol, quote.middle, step)
        cents = int(chance(self.seed, "step", quote.symbol, step) * (2 * LARGEST_STEP + 1)) - LARGEST_STEP
        return self._around(quote.symbol, max(LOWEST, quote.middle + cents * CENT), step)

    def _around(self, symbol: str, price: Decimal, step: int) -> Quote:
        return Quote(symbol, price - HALF_SPREAD, price + HALF_SPREAD, self.size, self.size, step)


class Tape:
    """Quotes read from a file: each tick takes the next line of every symbol; the last line of a symbol stays."""

    def __init__(self, quotes: Iterable[Quote]) -> None:
        self._lines: dict[str, list[Quote]] = {}
        for quote in quotes:
            self._lines.setdefault(quote.symbol, []).append(quote)

    def symbols(self) -> list[str]:
        return list(self._lines)

    def at(self, symbol: str, step: int) -> Quote | None:
        lines = self._lines.get(symbol)
        return replace(lines[min(step, len(lines) - 1)], step=step) if lines else None


@dataclass(frozen=True, slots=True)
class Prices:
    """The tape where it has the symbol, the walk for the rest."""

    walk: Walk
    tape: Tape

    def opening(self, symbol: str) -> Quote:
        return self.tape.at(symbol, 0) or self.walk.opening(symbol)

    def after(self, quote: Quote) -> Quote:
        if quote.pinned:
            return quote
        return self.tape.at(quote.symbol, quote.step + 1) or self.walk.after(quote)
