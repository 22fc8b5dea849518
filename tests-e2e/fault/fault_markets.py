"""Brokers other than the paper broker: what the stories' orders are called there, and what cannot be had."""

from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from typing import Any

Json = dict[str, Any]
QUICK = "QUICK"
"""A symbol that fills at once; at the paper broker its quote is set when the run begins."""
LOW, HIGH = "9.9", "10.1"
"""Around its quote at the paper broker."""
PRICE = Decimal(20)
"""What everything costs at the FIX acceptor and at the exchange: a limit below it rests, whatever the side."""
RESTING_STOPS = {"Stop": "Market", "StopLimit": "Limit", "TrailingStop": "Market"}
"""Nothing moves the price there, so a stop would rest for good."""


@dataclass(frozen=True)
class Market:
    """What the stories have to do with at one broker."""

    symbols: dict[str, str] = field(default_factory=dict)
    other: str = ""
    """For symbols that have no counterpart."""
    replaces: bool = True
    routes: bool = True
    times: dict[tuple[str, str], str] = field(default_factory=dict)
    """By kind and time in force: the nearest one that it has."""

    @property
    def is_paper(self) -> bool:
        return not self.symbols

    def payload(self, given: Json) -> Json:
        """A CREATE for this broker."""
        if self.is_paper:
            return given
        made = {**given, "symbol": self.symbols.get(given["symbol"], self.other)}
        made["spec"] = self.spec(given["spec"], given["symbol"])
        return made if self.routes else {name: value for name, value in made.items() if name != "route_strategy"}

    def spec(self, given: Json, symbol: str) -> Json:
        if self.is_paper:
            return given
        [(kind, terms)] = given.items()
        kind = RESTING_STOPS.get(kind, kind)
        made = {name: value for name, value in terms.items() if name not in ("stop_price", "trail_percent")}
        if "limit_price" in made:
            made["limit_price"] = _price(made["limit_price"], symbol)
        force = made.get("time_in_force", "DAY")
        return {kind: {**made, "time_in_force": self.times.get((kind, force), force)}}

    def rests(self, created: Json) -> bool:
        """Whether an order in the symbol that fills at once waits for a price that does not come."""
        [terms] = created["spec"].values()
        waits = _waits_at_paper(created, terms) if self.is_paper else _is_below(terms)
        return waits and terms.get("time_in_force") not in ("IOC", "FOK")


def _waits_at_paper(created: Json, terms: Json) -> bool:
    rests, trades = (LOW, HIGH) if created["order_side"] == "BUY" else (HIGH, LOW)
    if "trail_percent" in terms:
        return True
    return bool(terms["limit_price"] == rests if "limit_price" in terms else terms.get("stop_price") == trades)


def _is_below(terms: Json) -> bool:
    return "limit_price" in terms and Decimal(terms["limit_price"]) < PRICE


def _price(given: str, symbol: str) -> str:
    """QUICK costs 10 at the paper broker, the scripted symbols 100."""
    scaled = Decimal(given) * 2 if symbol == QUICK else Decimal(given) / 5
    return str(scaled.quantize(Decimal("0.01"), ROUND_DOWN))


PAPER = Market()
FIX = Market(
    symbols={
        QUICK: "FILL", "SIM.TRICKLE5": "HALF", "SIM.TRICKLE20": "PARTS", "SIM.PARTIAL50": "HALF",
        "SIM.REJECT": "REJECT", "SIM.REJECT_LATER": "REJECT", "SIM.TIMEOUT_AFTER_ACCEPT": "SILENT",
        "SIM.DUPLICATE_EVENT": "DOUBLE", "SIM.LATE_FILL": "LATE",
    },
    other="OPEN",
)  # fmt: skip
CCXT = Market(
    symbols={
        QUICK: "FILL/USDT", "SIM.TRICKLE5": "HALF/USDT", "SIM.PARTIAL50": "HALF/USDT", "SIM.REJECT": "REJECT/USDT",
        "SIM.TIMEOUT_AFTER_ACCEPT": "SILENT/USDT", "SIM.ERROR500_AFTER_ACCEPT": "CUT/USDT", "SIM.SLOW": "SLOW/USDT",
    },
    other="OPEN/USDT",
    replaces=False,
    routes=False,
    times={("Limit", "DAY"): "GTC", ("Market", "FOK"): "IOC"},
)  # fmt: skip
MARKETS = {"paper": PAPER, "fix": FIX, "ccxt:binance": CCXT}
