"""The life of an order as one table. What is not in it does not happen: a late or repeated report changes nothing."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum


class Status(StrEnum):
    PENDING = "PENDING"
    SUBMITTED = "SUBMITTED"
    ACCEPTED = "ACCEPTED"
    PARTIALLY_FILLED = "PARTIALLY_FILLED"
    PENDING_REPLACE = "PENDING_REPLACE"
    PENDING_CANCEL = "PENDING_CANCEL"
    FILLED = "FILLED"
    CANCELED = "CANCELED"
    REJECTED = "REJECTED"
    DENIED = "DENIED"
    EXPIRED = "EXPIRED"
    FAILED = "FAILED"


TERMINAL = frozenset(
    {Status.FILLED, Status.CANCELED, Status.REJECTED, Status.DENIED, Status.EXPIRED, Status.FAILED},
)


class Update(StrEnum):
    """What can happen to an intent: two commands, our own steps, and what a broker reports."""

    REPLACE = "REPLACE"
    CANCEL = "CANCEL"
    SUBMITTED = "SUBMITTED"
    DENIED = "DENIED"
    FAILED = "FAILED"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    PARTIALLY_FILLED = "PARTIALLY_FILLED"
    FILLED = "FILLED"
    REPLACED = "REPLACED"
    REPLACE_REJECTED = "REPLACE_REJECTED"
    CANCELED = "CANCELED"
    CANCEL_REJECTED = "CANCEL_REJECTED"
    EXPIRED = "EXPIRED"


_S, _U = Status, Update
# ACCEPTED as the next status means "working": PARTIALLY_FILLED if something is filled already (see `follow`).
NEXT: Mapping[tuple[Status, Update], Status] = {
    (_S.PENDING, _U.SUBMITTED): _S.SUBMITTED,
    (_S.PENDING, _U.ACCEPTED): _S.ACCEPTED,  # found at the broker after a crash before SUBMITTED was written
    (_S.PENDING, _U.REJECTED): _S.REJECTED,
    (_S.PENDING, _U.DENIED): _S.DENIED,
    (_S.PENDING, _U.FAILED): _S.FAILED,
    (_S.PENDING, _U.EXPIRED): _S.EXPIRED,  # too old to be sent
    (_S.PENDING, _U.PARTIALLY_FILLED): _S.PARTIALLY_FILLED,
    (_S.PENDING, _U.FILLED): _S.FILLED,
    (_S.PENDING, _U.CANCELED): _S.CANCELED,
    (_S.PENDING, _U.REPLACE): _S.PENDING_REPLACE,
    (_S.PENDING, _U.CANCEL): _S.PENDING_CANCEL,
    (_S.SUBMITTED, _U.ACCEPTED): _S.ACCEPTED,
    (_S.SUBMITTED, _U.REJECTED): _S.REJECTED,
    (_S.SUBMITTED, _U.DENIED): _S.DENIED,  # it had not got through, and must not be sent any more
    (_S.SUBMITTED, _U.FAILED): _S.FAILED,
    (_S.SUBMITTED, _U.PARTIALLY_FILLED): _S.PARTIALLY_FILLED,  # reports may overtake the answer to the order
    (_S.SUBMITTED, _U.FILLED): _S.FILLED,
    (_S.SUBMITTED, _U.CANCELED): _S.CANCELED,
    (_S.SUBMITTED, _U.EXPIRED): _S.EXPIRED,
    (_S.SUBMITTED, _U.REPLACE): _S.PENDING_REPLACE,
    (_S.SUBMITTED, _U.CANCEL): _S.PENDING_CANCEL,
    (_S.ACCEPTED, _U.PARTIALLY_FILLED): _S.PARTIALLY_FILLED,
    (_S.ACCEPTED, _U.FILLED): _S.FILLED,
    (_S.ACCEPTED, _U.REPLACED): _S.ACCEPTED,
    (_S.ACCEPTED, _U.REJECTED): _S.REJECTED,  # some brokers accept first and reject when the exchange does
    (_S.ACCEPTED, _U.CANCELED): _S.CANCELED,
    (_S.ACCEPTED, _U.EXPIRED): _S.EXPIRED,
    (_S.ACCEPTED, _U.REPLACE): _S.PENDING_REPLACE,
    (_S.ACCEPTED, _U.CANCEL): _S.PENDING_CANCEL,
    (_S.PARTIALLY_FILLED, _U.PARTIALLY_FILLED): _S.PARTIALLY_FILLED,
    (_S.PARTIALLY_FILLED, _U.FILLED): _S.FILLED,
    (_S.PARTIALLY_FILLED, _U.REPLACED): _S.ACCEPTED,
    (_S.PARTIALLY_FILLED, _U.REJECTED): _S.REJECTED,  # the replacement of an order that was filled in part
    (_S.PARTIALLY_FILLED, _U.CANCELED): _S.CANCELED,
    (_S.PARTIALLY_FILLED, _U.EXPIRED): _S.EXPIRED,
    (_S.PARTIALLY_FILLED, _U.REPLACE): _S.PENDING_REPLACE,
    (_S.PARTIALLY_FILLED, _U.CANCEL): _S.PENDING_CANCEL,
    (_S.PENDING_REPLACE, _U.SUBMITTED): _S.PENDING_REPLACE,  # replaced before it was sent: first things first
    (_S.PENDING_REPLACE, _U.ACCEPTED): _S.PENDING_REPLACE,
    (_S.PENDING_REPLACE, _U.PARTIALLY_FILLED): _S.PENDING_REPLACE,
    (_S.PENDING_REPLACE, _U.FILLED): _S.FILLED,
    (_S.PENDING_REPLACE, _U.REPLACED): _S.ACCEPTED,
    (_S.PENDING_REPLACE, _U.REPLACE_REJECTED): _S.ACCEPTED,
    (_S.PENDING_REPLACE, _U.REJECTED): _S.REJECTED,
    (_S.PENDING_REPLACE, _U.DENIED): _S.DENIED,
    (_S.PENDING_REPLACE, _U.FAILED): _S.FAILED,
    (_S.PENDING_REPLACE, _U.CANCELED): _S.CANCELED,
    (_S.PENDING_REPLACE, _U.EXPIRED): _S.EXPIRED,
    (_S.PENDING_REPLACE, _U.CANCEL): _S.PENDING_CANCEL,
    (_S.PENDING_CANCEL, _U.SUBMITTED): _S.PENDING_CANCEL,
    (_S.PENDING_CANCEL, _U.ACCEPTED): _S.PENDING_CANCEL,
    (_S.PENDING_CANCEL, _U.PARTIALLY_FILLED): _S.PENDING_CANCEL,
    (_S.PENDING_CANCEL, _U.FILLED): _S.FILLED,  # the fill was already on its way
    (_S.PENDING_CANCEL, _U.REPLACED): _S.PENDING_CANCEL,  # the replacement requested before
    (_S.PENDING_CANCEL, _U.REPLACE_REJECTED): _S.PENDING_CANCEL,
    (_S.PENDING_CANCEL, _U.CANCELED): _S.CANCELED,
    (_S.PENDING_CANCEL, _U.CANCEL_REJECTED): _S.ACCEPTED,
    (_S.PENDING_CANCEL, _U.REJECTED): _S.REJECTED,
    (_S.PENDING_CANCEL, _U.DENIED): _S.DENIED,
    (_S.PENDING_CANCEL, _U.FAILED): _S.FAILED,
    (_S.PENDING_CANCEL, _U.EXPIRED): _S.EXPIRED,
    # What was executed is executed, also when its report comes after the end of the order.
    (_S.CANCELED, _U.PARTIALLY_FILLED): _S.CANCELED,
    (_S.CANCELED, _U.FILLED): _S.FILLED,
    (_S.EXPIRED, _U.PARTIALLY_FILLED): _S.EXPIRED,
    (_S.EXPIRED, _U.FILLED): _S.FILLED,
    (_S.FILLED, _U.PARTIALLY_FILLED): _S.FILLED,  # more than was ordered: shown, not hidden
    (_S.FILLED, _U.FILLED): _S.FILLED,
    (_S.REJECTED, _U.PARTIALLY_FILLED): _S.REJECTED,
    (_S.REJECTED, _U.FILLED): _S.FILLED,
    (_S.DENIED, _U.PARTIALLY_FILLED): _S.DENIED,
    (_S.DENIED, _U.FILLED): _S.FILLED,
    (_S.FAILED, _U.PARTIALLY_FILLED): _S.FAILED,
    (_S.FAILED, _U.FILLED): _S.FILLED,
}


def follow(status: Status, update: Update, filled_quantity: Decimal = Decimal(0)) -> Status | None:
    """The status after the update, or None if the update means nothing to an intent in this status."""
    following = NEXT.get((status, update))
    if following is Status.ACCEPTED and filled_quantity > 0:
        return Status.PARTIALLY_FILLED
    return following


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> PENDING: CREATE"]
    lines += [f"    {status} --> {following}: {update}" for (status, update), following in NEXT.items()]
    lines += [f"    {status} --> [*]" for status in Status if status in TERMINAL]
    return "\n".join(lines)
