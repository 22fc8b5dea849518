"""Alpaca's market data: the latest quote and trade of stocks and of coins, in our words."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tip_brokers.answers import parse_moment, parse_price, understood
from tip_brokers.protocol import Quote

SYMBOLS_AT_ONCE = 100  # so that a request line stays below what servers take


class Paths(NamedTuple):
    quotes: str
    trades: str


STOCKS = Paths("/v2/stocks/quotes/latest", "/v2/stocks/trades/latest")
COINS = Paths("/v1beta3/crypto/us/latest/quotes", "/v1beta3/crypto/us/latest/trades")


def batches(symbols: Sequence[str]) -> Iterator[tuple[Paths, Sequence[str]]]:
    """Which symbols to request where. A coin is written as a pair: BTC/USD."""
    coins = [symbol for symbol in symbols if "/" in symbol]
    stocks = [symbol for symbol in symbols if "/" not in symbol]
    for paths, named in ((STOCKS, stocks), (COINS, coins)):
        for start in range(0, len(named), SYMBOLS_AT_ONCE):
            yield paths, named[start : start + SYMBOLS_AT_ONCE]


def read_quotes(symbols: Sequence[str], quoted: Any, traded: Any) -> list[Quote]:
    """What the two answers say about these symbols; whatever else they hold is not read."""
    with understood():
        quotes, trades = quoted["quotes"] or {}, traded["trades"] or {}
        found = [_quote(symbol, quotes.get(symbol) or {}, trades.get(symbol) or {}) for symbol in symbols]
        return [quote for quote in found if quote.quoted_at or quote.traded_at]
    raise AssertionError  # `understood` never swallows without raising; this is for the type checker


def _quote(symbol: str, quote: Any, trade: Any) -> Quote:
    return Quote(
        symbol,
        parse_price(quote.get("bp")),
        parse_price(quote.get("ap")),
        parse_price(trade.get("p")),
        parse_moment(quote["t"]) if quote else None,
        parse_moment(trade["t"]) if trade else None,
    )
