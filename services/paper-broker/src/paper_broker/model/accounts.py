"""Cash, positions and what open orders hold back of them."""

from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal

from paper_broker.model.orders import PLACES, ZERO, Order, Side


@dataclass(frozen=True, slots=True)
class Position:
    """Signed quantity: negative is short. `cost` is what the open quantity was bought (or sold) for, signed alike."""

    symbol: str
    qty: Decimal = ZERO
    cost: Decimal = ZERO

    @property
    def average_price(self) -> Decimal:
        return (self.cost / self.qty).quantize(PLACES, ROUND_HALF_UP).normalize() if self.qty else ZERO

    def traded(self, qty: Decimal, price: Decimal) -> "Position":
        """After buying `qty` (selling if negative). Reducing keeps the average price; crossing zero starts anew."""
        after = self.qty + qty
        if self.qty * qty >= 0:
            return Position(self.symbol, after, self.cost + qty * price)
        if self.qty * after <= 0:
            return Position(self.symbol, after, after * price)
        # Rounded, so that sums of costs stay exact however often a position is reduced.
        return Position(self.symbol, after, (self.cost * after / self.qty).quantize(PLACES, ROUND_HALF_UP))


@dataclass(slots=True)
class Account:
    """One key pair's account. `reserved` and `held` always equal the sums over its open orders."""

    id: str
    cash: Decimal
    positions: dict[str, Position] = field(default_factory=dict)
    reserved: Decimal = ZERO
    held: dict[str, Decimal] = field(default_factory=dict)
    short_cost: Decimal = ZERO

    @property
    def buying_power(self) -> Decimal:
        """Cash account rules: no leverage, and the proceeds of a short sale cannot be spent."""
        return self.cash - 2 * self.short_cost - self.reserved

    def position(self, symbol: str) -> Position:
        return self.positions.get(symbol) or Position(symbol)

    def hold(self, order: Order, direction: int) -> None:
        """Hold back (+1) or give back (-1) what the open part of an order needs."""
        if not order.open:
            return
        if order.unit_hold is not None:
            self.reserved += direction * order.unit_hold * order.remaining
        else:
            self.held[order.symbol] = self.held.get(order.symbol, ZERO) + direction * order.remaining

    def trade(self, order: Order, qty: Decimal, price: Decimal) -> Position:
        """Book an execution: cash one way, quantity the other."""
        signed = qty if order.side is Side.BUY else -qty
        self.cash -= signed * price
        self.restore(self.position(order.symbol).traded(signed, price))
        return self.position(order.symbol)

    def restore(self, position: Position) -> None:
        self.short_cost -= short_cost(self.position(position.symbol))
        self.short_cost += short_cost(position)
        self.positions[position.symbol] = position


def short_cost(position: Position) -> Decimal:
    return max(ZERO, -position.cost)
