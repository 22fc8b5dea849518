"""The way to one exchange: ccxt's objects, one for each thread and secret, with markets that all of them share."""

import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import ccxt

from tip_broker_ccxt.account import CcxtAccount
from tip_broker_ccxt.endings import Endings
from tip_broker_ccxt.exchanges import CREDENTIALS, Exchange, is_proven
from tip_broker_ccxt.failures import understood_by
from tip_broker_ccxt.statuses import with_known_words, with_own_figures
from tip_brokers.answers import MISREAD
from tip_brokers.checked_http import bounded_session, written
from tip_brokers.description import BrokerSettings
from tip_brokers.protocol import NotSent, no_check

MARKETS_SECONDS, RETRY_SECONDS, LOADING_SECONDS = 3600.0, 60.0, 0.5
MARKETS_READ_SECONDS, MARKETS_BYTES = 10.0, 64 * 2**20
MOST_OBJECTS = 8  # in one thread
OPTIONS = {"defaultType": "spot", "fetchCurrencies": False, "fetchMargins": False,
           "warnOnFetchOpenOrdersWithoutSymbol": False, "fetchOrder": {"acknowledged": True}, "uta": False,
           "enableUnifiedAccount": True, "enableUnifiedMargin": False}  # fmt: skip
logging.getLogger("ccxt").setLevel(logging.WARNING)  # below that it logs requests with their keys


def make_exchange(name: str, secret: Mapping[str, str], **named: Any) -> Any:
    """ccxt's object for an exchange, with the settings that every one has here."""
    made = getattr(ccxt, name)(
        {
            **{part: value for part, value in secret.items() if part in CREDENTIALS},
            "enableRateLimit": False,  # it would sleep in the executor's threads
            "options": OPTIONS,
            **named,
        }
    )
    _keep_to_spot(made.options.get("fetchMarkets"))
    made.enableLastJsonResponse = True
    made.number = str  # amounts are decimals, not floats
    if not is_proven(name):
        made.safe_order = with_own_figures(made.safe_order)
        made.parse_order_status = with_known_words(getattr(made, "parse_order_status", str))
    return made


def _keep_to_spot(reading: Any) -> None:
    """Of the kinds of markets that ccxt would read there."""
    kinds = reading.get("types") if isinstance(reading, dict) else None
    if isinstance(kinds, dict):
        reading["types"] = {kind: kind == "spot" for kind in kinds}
    elif kinds:
        reading["types"] = ["spot"]


class Connection:
    def __init__(self, exchange: Exchange, environment: str, settings: BrokerSettings, address: str | None) -> None:
        self.exchange, self._environment, self._address = exchange, environment, address
        self._settings = settings
        self._here = threading.local()
        self._markets: tuple[float, Any] | None = None
        self._lock = threading.Lock()
        self.endings = Endings()

    @property
    def call_seconds(self) -> float:
        return self._settings.connect_seconds + self._settings.read_seconds

    def account(self, secret: Mapping[str, str]) -> CcxtAccount:
        return CcxtAccount(self, dict(secret))

    def object_for(self, secret: Mapping[str, str]) -> Any:
        """ccxt's object for this secret, which no other thread uses, with its markets loaded."""
        made: OrderedDict[bytes, Any] | None = getattr(self._here, "made", None)
        if made is None:
            made = self._here.made = OrderedDict()
        key = hashlib.sha256(repr(sorted(secret.items())).encode()).digest()
        if key not in made:
            made[key] = self._make(secret, self._settings.read_seconds)
            if len(made) > MOST_OBJECTS:
                made.popitem(last=False)[1].session.close()
        made.move_to_end(key)
        written.start(no_check)
        with understood_by(made[key], sends=False):
            self._give_markets(made[key])
        return made[key]

    def _make(self, secret: Mapping[str, str], read_seconds: float) -> Any:
        session = bounded_session(self._settings.connect_seconds, read_seconds)
        made = make_exchange(self.exchange.id, secret, session=session)
        if self._environment == "paper":
            made.set_sandbox_mode(True)
        if self._address:
            made.urls["api"] = _moved(made.urls["api"], self._address)
        return made

    def _give_markets(self, made: Any) -> None:
        """One thread reads them; the others use what there is, or come back: nobody waits for a slow exchange here."""
        if not self._are_fresh() and self._lock.acquire(blocking=False):
            try:
                self._load_markets()
            finally:
                self._lock.release()
        if self._markets is None:
            raise NotSent("markets_not_loaded", LOADING_SECONDS)
        if made.markets is not self._markets[1].markets:
            made.set_markets_from_exchange(self._markets[1])

    def _are_fresh(self) -> bool:
        return self._markets is not None and time.monotonic() - self._markets[0] < MARKETS_SECONDS

    def _load_markets(self) -> None:
        """They are many, and hardly change: what was read before is better than none."""
        loader = self._make({}, MARKETS_READ_SECONDS)
        written.start(no_check, MARKETS_BYTES)
        try:
            loader.load_markets(True)
        except (ccxt.BaseError, *MISREAD):
            if self._markets is None:
                raise
            self._markets = (time.monotonic() - MARKETS_SECONDS + RETRY_SECONDS, self._markets[1])
        else:
            self._markets = (time.monotonic(), loader)
        finally:
            loader.session.close()


def _moved(urls: Any, address: str) -> Any:
    """The same paths at another address."""
    if isinstance(urls, dict):
        return {name: _moved(url, address) for name, url in urls.items()}
    if not isinstance(urls, str):
        return urls
    there = urlsplit(address)
    return urlunsplit((there.scheme, there.netloc, *urlsplit(urls)[2:]))
