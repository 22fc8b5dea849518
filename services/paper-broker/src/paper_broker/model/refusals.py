"""Why the broker refuses. The messages are Alpaca's, because callers match on them."""

from decimal import Decimal


class Refusal(Exception):
    """A request the broker will not carry out; nothing changed."""


class NotFound(Refusal):
    """No such order, position or asset in this account."""


class Unprocessable(Refusal):
    """The request is understood and makes no sense, now or ever."""


class DuplicateClientOrderId(Unprocessable):
    """The account already used this client order id."""

    def __init__(self) -> None:
        super().__init__("client_order_id must be unique")


class InsufficientBuyingPower(Refusal):
    """The account cannot pay for the order beside what it already has open."""

    def __init__(self, cost: Decimal, available: Decimal) -> None:
        super().__init__("insufficient buying power")
        self.details = {"cost_basis": str(cost), "buying_power": str(available)}


class InsufficientQuantity(Refusal):
    """The account holds some of the symbol, but less than it wants to sell."""

    def __init__(self, symbol: str, requested: Decimal, existing: Decimal, held: Decimal) -> None:
        available = existing - held
        super().__init__(f"insufficient qty available for order (requested: {requested}, available: {available})")
        self.details = {
            "symbol": symbol,
            "available": str(available),
            "existing_qty": str(existing),
            "held_for_orders": str(held),
        }
