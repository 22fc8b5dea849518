"""ccxt's errors in our four words. When in doubt the outcome is unknown: then the exchange is queried."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ccxt
from requests.exceptions import RequestException

from tip_brokers.answers import reason, understood
from tip_brokers.checked_http import written
from tip_brokers.protocol import (
    BrokerError,
    CredentialRefused,
    DuplicateClientOrderId,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Unreachable,
)

RETRY_SECONDS = 5.0
NONCE_SECONDS = 0.2
# The most special first.
_REFUSALS: dict[type[Exception], str] = {
    ccxt.DuplicateOrderId: "DUPLICATE_CLIENT_ORDER_ID",
    ccxt.OrderNotFound: "ORDER_NOT_FOUND",
    ccxt.InsufficientFunds: "INSUFFICIENT_BUYING_POWER",
    ccxt.InvalidOrder: "BROKER_REFUSED",
    ccxt.BadSymbol: "UNKNOWN_SYMBOL",
    ccxt.BadRequest: "BROKER_REFUSED",
    ccxt.OperationRejected: "BROKER_FORBADE",
    ccxt.PermissionDenied: "BROKER_FORBADE",
    ccxt.AccountSuspended: "BROKER_FORBADE",
    ccxt.ArgumentsRequired: "BROKER_REFUSED",
    ccxt.NotSupported: "BROKER_REFUSED",
}


@contextmanager
def understood_by(exchange: Any, *, sends: bool = True) -> Iterator[None]:
    """Around calls of ccxt. `sends`: whether what they write may change something at the exchange."""
    try:
        with understood():
            yield
    except OutcomeUnknown as error:
        raise (error if sends else NotSent(error.reason)) from None
    except (ccxt.BaseError, RequestException) as error:
        raise _translated(exchange, error, sends=sends) from None


def _translated(exchange: Any, error: Exception, *, sends: bool) -> BrokerError:
    for kind, code in _REFUSALS.items():
        if isinstance(error, kind):
            refusal = DuplicateClientOrderId if kind is ccxt.DuplicateOrderId else Refused
            return refusal(code, _words(exchange, error))
    if isinstance(error, ccxt.InvalidNonce):  # others with the same key were faster, or the clocks differ: not done
        return NotSent(type(error).__name__, NONCE_SECONDS)
    if isinstance(error, ccxt.AuthenticationError):
        return CredentialRefused()
    if isinstance(error, (ccxt.RateLimitExceeded, ccxt.DDoSProtection)):
        return RateLimited("rate_limited", RETRY_SECONDS)
    return _without_answer(error, sends=sends)


def _without_answer(error: Exception, *, sends: bool) -> BrokerError:
    name = type(error).__name__
    if not written.begun:
        return Unreachable(name)
    if not sends:
        return NotSent(name)
    return OutcomeUnknown("timeout" if isinstance(error, ccxt.RequestTimeout) else name)


def _words(exchange: Any, error: Exception) -> str:
    """The exchange's own words: ccxt puts its name before them, and never a key."""
    return reason(str(error).removeprefix(f"{exchange.id} "))
