"""Orders as an agent describes them: one type for each kind, with exactly the prices that it has."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tip_client import Side
from tip_client.orders import order_of

if TYPE_CHECKING:
    from tip_client import NewOrder

Amount = Annotated[
    str, Field(pattern=r"^[0-9]{1,15}(\.[0-9]{1,9})?$", description="A decimal above zero, as a string.")
]
_Stops = Literal["DAY", "GTC"]


class _Order(BaseModel):
    model_config = ConfigDict(extra="forbid")

    symbol: Annotated[str, Field(description="Such as AAPL.")]
    side: Literal["BUY", "SELL"]
    quantity: Amount
    client_id: Annotated[str | None, Field(description="Your own id of the order, unique in the account.")] = None

    def new_order(self) -> "NewOrder":
        given = {name: getattr(self, name, None) for name in ("limit_price", "stop_price", "time_in_force")}
        terms: dict[str, Any] = {"limit": given["limit_price"], "stop": given["stop_price"]}
        about: dict[str, Any] = {"client_id": self.client_id, "tags": ("mcp",), "route_strategy": None}
        side = Side(self.side)
        return order_of(self.symbol, side, self.quantity, **terms, time_in_force=given["time_in_force"], **about)


class MarketOrder(_Order):
    """At once, at whatever the market pays."""

    kind: Literal["Market"]
    time_in_force: Literal["DAY", "GTC", "IOC", "FOK"] | None = None


class LimitOrder(_Order):
    """At the limit price or better."""

    kind: Literal["Limit"]
    limit_price: Amount
    time_in_force: Literal["DAY", "GTC", "IOC", "FOK"] | None = None


class StopOrder(_Order):
    """A market order once the stop price is reached."""

    kind: Literal["Stop"]
    stop_price: Amount
    time_in_force: _Stops | None = None


class StopLimitOrder(_Order):
    """A limit order once the stop price is reached."""

    kind: Literal["StopLimit"]
    stop_price: Amount
    limit_price: Amount
    time_in_force: _Stops | None = None


AnyOrder = Annotated[MarketOrder | LimitOrder | StopOrder | StopLimitOrder, Field(discriminator="kind")]
