"""What is sent to the broker, as FIX messages. Pure."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from tip_broker_fix.gateway import tags
from tip_broker_fix.gateway.codec import Field
from tip_broker_fix.gateway.orders import ABSENT, Order, cancel_id

AUTOMATED = "1"  # HandlInst: no broker's intervention
ALL_ORDERS = "7"  # MassStatusReqType

Body = Sequence[Field]


def new_order(order: Order, now: datetime) -> list[Field]:
    destination = [(tags.EX_DESTINATION, order.destination)] if order.destination else []
    return [*_again(order), *_named(order, order.client_order_id, now), *_terms(order, order.quantity), *destination]


def replacement(order: Order, old: Order, now: datetime) -> list[Field]:
    """OrderQty is of the whole chain, with what is filled already."""
    return [
        *_again(order),
        (tags.ORIG_CL_ORD_ID, old.client_order_id),
        *_known(old),
        *_named(order, order.client_order_id, now),
        *_terms(order, order.quantity + old.base + old.filled),
    ]


def cancel(order: Order, now: datetime) -> list[Field]:
    names = [(tags.ORIG_CL_ORD_ID, order.client_order_id), *_known(order)]
    quantity = (tags.ORDER_QTY, plain(order.quantity + order.base))
    return [*names, *_named(order, cancel_id(order, order.cancels), now), quantity]


def status(order: Order) -> list[Field]:
    """The answer names the number under which the order was last sent: so it is known what it is about."""
    about = [(tags.CL_ORD_ID, order.client_order_id), (tags.ACCOUNT, order.account), (tags.SYMBOL, order.symbol)]
    return [*about, (tags.SIDE, tags.SIDES[order.side]), (tags.ORD_STATUS_REQ_ID, str(order.number)), *_known(order)]


def mass_status(name: str) -> list[Field]:
    return [(tags.MASS_STATUS_REQ_ID, name), (tags.MASS_STATUS_REQ_TYPE, ALL_ORDERS)]


def _again(order: Order) -> list[Field]:
    """One that the broker said not to have is marked as perhaps sent before, under this ClOrdID."""
    return [(tags.POSS_RESEND, "Y")] if order.status == ABSENT else []


def _named(order: Order, name: str, now: datetime) -> Sequence[Field]:
    return (
        (tags.CL_ORD_ID, name),
        (tags.ACCOUNT, order.account),
        (tags.SYMBOL, order.symbol),
        (tags.SIDE, tags.SIDES[order.side]),
        (tags.TRANSACT_TIME, tags.written(now)),
    )


def _terms(order: Order, quantity: Decimal) -> list[Field]:
    prices = [(tags.PRICE, order.limit_price), (tags.STOP_PX, order.stop_price)]
    return [
        (tags.HANDL_INST, AUTOMATED),
        (tags.ORDER_QTY, plain(quantity)),
        (tags.ORD_TYPE, tags.KINDS[order.kind]),
        (tags.TIME_IN_FORCE, tags.TIMES_IN_FORCE[order.time_in_force]),
        *((tag, plain(price)) for tag, price in prices if price is not None),
    ]


def _known(order: Order) -> list[Field]:
    return [(tags.ORDER_ID, order.order_id)] if order.order_id else []


def plain(value: Decimal) -> str:
    return format(value.normalize(), "f")
