"""A crypto exchange on loopback that answers in the shapes that Binance, Kraken and OKX (spot) document.

One book (`book`) behind three dialects. What a coin is called decides how its orders behave, as the paper broker's
scripted symbols do.
"""

from tip_testing.loopback_exchange.book import COINS, KEY, SECRET, Book
from tip_testing.loopback_exchange.server import LoopbackExchange

__all__ = ["COINS", "KEY", "SECRET", "Book", "LoopbackExchange"]
