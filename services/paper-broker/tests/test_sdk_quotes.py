"""Prices, read by the official SDK's market data clients, unchanged."""

from datetime import UTC, datetime, timedelta

import pytest
import requests
from alpaca.data.historical import CryptoHistoricalDataClient, StockHistoricalDataClient
from alpaca.data.requests import (
    CryptoLatestQuoteRequest,
    CryptoLatestTradeRequest,
    StockLatestQuoteRequest,
    StockLatestTradeRequest,
)

from .conftest import Client


@pytest.fixture
def stocks(client: Client) -> StockHistoricalDataClient:
    return StockHistoricalDataClient(client.key, "secret", url_override=client.url)


@pytest.fixture
def coins(client: Client) -> CryptoHistoricalDataClient:
    return CryptoHistoricalDataClient(client.key, "secret", url_override=client.url)


def test_the_latest_quote_and_trade_of_a_stock_are_the_markets_price(stocks, symbol):
    quote = stocks.get_stock_latest_quote(StockLatestQuoteRequest(symbol_or_symbols=symbol))[symbol]
    trade = stocks.get_stock_latest_trade(StockLatestTradeRequest(symbol_or_symbols=symbol))[symbol]

    assert (quote.bid_price, quote.ask_price, trade.price) == (99, 101, 100)
    assert datetime.now(UTC) - quote.timestamp < timedelta(minutes=1)


def test_coins_have_endpoints_of_their_own(coins, client):
    client.quote("BTC/USD", "60000.5", "60001")

    quote = coins.get_crypto_latest_quote(CryptoLatestQuoteRequest(symbol_or_symbols="BTC/USD"))["BTC/USD"]
    trade = coins.get_crypto_latest_trade(CryptoLatestTradeRequest(symbol_or_symbols="BTC/USD"))["BTC/USD"]

    assert (quote.bid_price, quote.ask_price, trade.price) == (60000.5, 60001, 60000.75)


def test_several_symbols_are_read_at_once_and_what_is_no_symbol_is_left_out(stocks, symbol):
    wanted = StockLatestQuoteRequest(symbol_or_symbols=[symbol, "SIM.OPEN", "no symbol"])

    assert set(stocks.get_stock_latest_quote(wanted)) == {symbol, "SIM.OPEN"}


def test_reading_a_price_adds_no_symbol_to_the_market(start):
    broker = start()
    client = broker.client()

    assert client.raw("GET", "/v2/stocks/quotes/latest", params={"symbols": "NEVER"}).json()["quotes"]["NEVER"]
    broker.sim("POST", "/ticks", json={"count": 3})

    assert broker.sim("GET", "/quotes/NEVER").json()["step"] == 0, "it would have walked"


@pytest.mark.parametrize("symbols", ["", ",".join(f"S{number}" for number in range(101))])
def test_no_symbols_and_too_many_are_refused(client, symbols):
    assert client.raw("GET", "/v2/stocks/quotes/latest", params={"symbols": symbols}).status_code == 400


def test_prices_need_a_key_pair(shared_broker):
    answer = requests.get(f"{shared_broker.url}/v2/stocks/quotes/latest", params={"symbols": "A"}, timeout=60)

    assert answer.status_code == 401
