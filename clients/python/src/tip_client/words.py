"""The words of the API. One that a later version adds is kept as it is: nothing breaks before a caller compares it."""

from enum import StrEnum
from typing import Self


class Word(StrEnum):
    """A string that is one of the API's words, or one that this version does not know yet."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        word = str.__new__(cls, value)
        word._name_ = word._value_ = value
        return word

    @property
    def is_known(self) -> bool:
        """Whether this version of the client knows the word."""
        return self._value_ in type(self)._value2member_map_


class Environment(Word):
    """Where an account trades."""

    PAPER = "paper"
    LIVE = "live"


class Side(Word):
    """What an order does."""

    BUY = "BUY"
    SELL = "SELL"


class OrderKind(Word):
    """Which prices an order has."""

    MARKET = "Market"
    LIMIT = "Limit"
    STOP = "Stop"
    STOP_LIMIT = "StopLimit"
    TRAILING_STOP = "TrailingStop"


class TimeInForce(Word):
    """How long an order stays open."""

    DAY = "DAY"
    GTC = "GTC"
    IOC = "IOC"
    FOK = "FOK"


class RouteStrategy(Word):
    """How an order is routed."""

    AUTO = "AUTO"
    DIRECT = "DIRECT"


class CommandType(Word):
    """What an action did to its intent."""

    CREATE = "CREATE"
    REPLACE = "REPLACE"
    CANCEL = "CANCEL"


class Status(Word):
    """How far an order has come."""

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

    @property
    def is_terminal(self) -> bool:
        """Whether the order has ended; a status that is not known has not."""
        return self in _TERMINAL


_TERMINAL = frozenset(
    {Status.FILLED, Status.CANCELED, Status.REJECTED, Status.DENIED, Status.EXPIRED, Status.FAILED},
)


class TradingState(Word):
    """What an account or organization may trade: everything, what reduces a position, nothing."""

    ACTIVE = "ACTIVE"
    REDUCING = "REDUCING"
    HALTED = "HALTED"


class BulkStatus(Word):
    """How far a bulk operation has come."""

    PENDING = "PENDING"
    CANCELING = "CANCELING"
    CLOSING = "CLOSING"
    COMPLETED = "COMPLETED"


class CredentialStatus(Word):
    """What the broker has said of a credential."""

    PENDING = "pending"
    ACTIVE = "active"
    INVALID = "invalid"
    REVOKED = "revoked"


class CredentialTestStatus(Word):
    """What came of the test of a credential that was last requested."""

    PENDING = "pending"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    FAILED = "failed"


class Role(Word):
    """What a member of an organization may do."""

    ADMIN = "admin"
    MEMBER = "member"
    READ_ONLY = "read_only"


class Decision(Word):
    """What controls say of a command."""

    ALLOWED = "ALLOWED"
    REFUSED = "REFUSED"


class TimeWindow(Word):
    """The period of statistics."""

    LAST_HOUR = "last_hour"
    LAST_DAY = "last_day"
    LAST_WEEK = "last_week"
    LAST_MONTH = "last_month"
    ALL = "all"
