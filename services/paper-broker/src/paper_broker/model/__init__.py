"""The market and its accounts: pure, deterministic, standard library only; time is an argument everywhere."""

from paper_broker.model.accounts import Account, Position
from paper_broker.model.exchange import Changes, Exchange, Rules
from paper_broker.model.orders import (
    CLOSED,
    Change,
    Event,
    EventKind,
    Kind,
    NewOrder,
    Order,
    Side,
    Status,
    StopLoss,
    TimeInForce,
)
from paper_broker.model.prices import Quote
from paper_broker.model.refusals import (
    DuplicateClientOrderId,
    InsufficientBuyingPower,
    InsufficientQuantity,
    NotFound,
    Refusal,
    Unprocessable,
)

__all__ = [
    "CLOSED",
    "Account",
    "Change",
    "Changes",
    "DuplicateClientOrderId",
    "Event",
    "EventKind",
    "Exchange",
    "InsufficientBuyingPower",
    "InsufficientQuantity",
    "Kind",
    "NewOrder",
    "NotFound",
    "Order",
    "Position",
    "Quote",
    "Refusal",
    "Rules",
    "Side",
    "Status",
    "StopLoss",
    "TimeInForce",
    "Unprocessable",
]
