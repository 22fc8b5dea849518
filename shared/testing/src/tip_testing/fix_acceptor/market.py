"""The broker's market. What a symbol is called decides how its orders behave, as the paper broker's do.

It has no clock and no chance: the same messages in the same order lead to the same state and the same ExecIDs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

PRICE = Decimal(20)
SYMBOLS = ("FILL", "PARTS", "OPEN", "HALF", "REJECT", "SILENT", "DOUBLE", "LATE")
"""Is filled at once; is filled in two parts; rests, and is canceled at once; fills half and rests; is refused; is
filled and never answered; is filled and reported twice; is filled only after its cancel was taken in."""
NEW, PARTIAL, FILLED, CANCELED, REPLACED, PENDING_CANCEL, REJECTED, EXPIRED = "0", "1", "2", "4", "5", "6", "8", "C"
TRADE, STATUS = "F", "I"
UNKNOWN_ORDER, DUPLICATE_ORDER, TOO_LATE = "5", "6", "0"
OPEN = (NEW, PARTIAL)
BUY = "1"

Fields = dict[int, str]


@dataclass
class Chain:
    """An order with all that replaced it."""

    order_id: str
    name: str
    account: str
    symbol: str
    side: str
    quantity: Decimal
    destination: str
    names: list[str] = field(default_factory=list)
    filled: Decimal = Decimal(0)
    status: str = NEW
    replaced_at: dict[str, Decimal] = field(default_factory=dict)
    """How much was filled when a name ended."""
    trades: list[tuple[str, str, Decimal]] = field(default_factory=list)
    """Of each fill: the name it was filled under, its ExecID, how much."""


@dataclass
class Market:
    chains: list[Chain] = field(default_factory=list)
    executions: int = 0
    _by_name: dict[str, Chain] = field(default_factory=dict)

    def answer(self, message: Mapping[int, str]) -> list[Fields]:
        """What the broker says to a message of type D, F, G, H or AF."""
        kinds = {"D": self._create, "F": self._cancel, "G": self._replace, "H": self._status, "AF": self._all}
        return list(kinds[message[35]](message))

    def find(self, name: str) -> Chain | None:
        return self._by_name.get(name)

    def _create(self, message: Mapping[int, str]) -> Iterator[Fields]:
        if chain := self.find(message[11]):
            is_repeated = "Y" in (message.get(43), message.get(97))
            yield self._report(chain, STATUS) if is_repeated else self._refused(message, DUPLICATE_ORDER, "duplicate")
            return
        if message[55] == "REJECT":
            yield self._refused(message, "0", "insufficient buying power")
            return
        chain = self._opened(message)
        accepted = [self._report(chain, NEW)] if chain.symbol != "FILL" else []
        reports = [*accepted, *self._fills(chain, message)] or [self._report(chain, NEW)]
        if chain.symbol == "DOUBLE":
            reports = [twice for report in reports for twice in (report, {**report, 97: "Y"})]
        if chain.symbol != "SILENT":
            yield from reports

    def _opened(self, message: Mapping[int, str]) -> Chain:
        chain = Chain(
            f"B{len(self.chains) + 1}", message[11], message.get(1, ""), message[55], message[54], Decimal(message[38]),
            message.get(100, ""), [message[11]],
        )  # fmt: skip
        self.chains.append(chain)
        self._by_name[chain.name] = chain
        return chain

    def _fills(self, chain: Chain, message: Mapping[int, str]) -> Iterator[Fields]:
        crosses = message[40] == "1" or (message[40] == "2" and _crosses(chain.side, Decimal(message[44])))
        if chain.symbol in ("HALF", "PARTS"):
            yield self._fill(chain, chain.quantity / 2)
        if chain.symbol in ("FILL", "PARTS", "SILENT", "DOUBLE") and crosses:
            yield self._fill(chain, chain.quantity - chain.filled)
        if chain.status in OPEN and message.get(59) in ("3", "4"):
            chain.status = EXPIRED
            yield self._report(chain, EXPIRED)

    def _fill(self, chain: Chain, quantity: Decimal) -> Fields:
        chain.filled += quantity
        chain.status = FILLED if chain.filled == chain.quantity else PARTIAL
        report = {**self._report(chain, TRADE), 32: f"{quantity:f}", 31: str(PRICE)}
        chain.trades.append((chain.name, report[17], quantity))
        return report

    def _cancel(self, message: Mapping[int, str]) -> Iterator[Fields]:
        chain = self.find(message[41])
        if chain is None or chain.status not in OPEN or chain.name != message[41]:
            yield self._not_changed(message, chain, "1")
            return
        names = {11: message[11], 41: message[41]}
        if chain.symbol != "OPEN":
            yield {**self._report(chain, PENDING_CANCEL), 39: PENDING_CANCEL, **names}
        if chain.symbol == "LATE":
            yield self._fill(chain, chain.quantity - chain.filled)
            yield self._not_changed(message, chain, "1")
            return
        chain.status = CANCELED
        yield {**self._report(chain, CANCELED), **names}

    def _replace(self, message: Mapping[int, str]) -> Iterator[Fields]:
        chain = self.find(message[41])
        if known := self.find(message[11]):
            yield self._report(known, STATUS)
            return
        total = Decimal(message[38])
        if chain is None or chain.status not in OPEN or chain.name != message[41] or total <= chain.filled:
            yield self._not_changed(message, chain, "2")
            return
        chain.replaced_at[chain.name] = chain.filled
        chain.name, chain.quantity = message[11], total
        chain.names.append(message[11])
        self._by_name[message[11]] = chain
        yield {**self._report(chain, REPLACED), 41: message[41]}

    def _status(self, message: Mapping[int, str]) -> Iterator[Fields]:
        chain = self.find(message[11])
        query = {790: message[790]} if 790 in message else {}
        if chain is None:
            yield {**self._refused(message, UNKNOWN_ORDER, "unknown order"), 150: STATUS, **query}
            return
        report = {**self._report(chain, STATUS), **query}
        if message[11] in chain.replaced_at:
            report |= {11: message[11], 39: REPLACED, 14: f"{chain.replaced_at[message[11]]:f}"}
        yield report

    def _all(self, message: Mapping[int, str]) -> Iterator[Fields]:
        for chain in self.chains:
            if chain.status in OPEN:
                yield {**self._report(chain, STATUS), 584: message[584]}

    def _report(self, chain: Chain, kind: str) -> Fields:
        self.executions += 1
        left = chain.quantity - chain.filled if chain.status in OPEN else Decimal(0)
        return {
            35: "8", 37: chain.order_id, 11: chain.name, 17: f"E{self.executions}", 150: kind, 39: chain.status,
            1: chain.account, 55: chain.symbol, 54: chain.side, 38: f"{chain.quantity:f}", 151: f"{left:f}",
            14: f"{chain.filled:f}", 6: str(PRICE if chain.filled else 0),
        }  # fmt: skip

    def _refused(self, message: Mapping[int, str], reason: str, text: str) -> Fields:
        self.executions += 1
        return {
            35: "8", 37: "NONE", 11: message[11], 17: f"E{self.executions}", 150: REJECTED, 39: REJECTED, 103: reason,
            58: text, 55: message[55], 54: message[54], 38: message.get(38, "0"), 151: "0", 14: "0", 6: "0",
        }  # fmt: skip

    def _not_changed(self, message: Mapping[int, str], chain: Chain | None, request: str) -> Fields:
        return {
            35: "9", 37: chain.order_id if chain else "NONE", 11: message[11], 41: message[41],
            39: chain.status if chain else REJECTED, 434: request, 102: TOO_LATE if chain else "1", 58: "too late",
        }  # fmt: skip


def _crosses(side: str, limit: Decimal) -> bool:
    return limit >= PRICE if side == BUY else limit <= PRICE
