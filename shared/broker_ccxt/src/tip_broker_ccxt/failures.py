"""ccxt's errors in our four words. When in doubt the outcome is unknown: then the exchange is queried."""

import binascii
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ccxt
from requests.exceptions import RequestException

from tip_broker_ccxt.exchanges import CREDENTIALS, RECOVERY, is_proven
from tip_brokers.answers import reason, understood
from tip_brokers.checked_http import written
from tip_brokers.protocol import (
    BROKEN_ANSWER,
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
_ADDRESS = re.compile(r"https?://\S*")
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
def understood_by(
    exchange: Any, *, sends: bool = True, is_new_order: bool = False, reads_one_order: bool = False
) -> Iterator[None]:
    """Around calls of ccxt. `sends`: whether what they write may change something at the exchange.

    `is_new_order`: whether it may make an order there, of whose refusal there must be no doubt. Some exchanges are read
    before it: an error of that is none of the order's.
    `reads_one_order`: then an error that ccxt does not know says nothing of the account's other orders, nor that there
    is no such order.
    """
    try:
        with understood():
            yield
    except OutcomeUnknown as error:
        if isinstance(error.__context__, binascii.Error):
            raise CredentialRefused from None  # a secret that nothing can be signed with
        raise (error if sends and _is_sent(is_new_order=is_new_order) else NotSent(error.reason)) from None
    except (ccxt.BaseError, RequestException) as error:
        is_sent = _is_sent(is_new_order=is_new_order)
        if is_new_order and is_sent and _is_doubtful(exchange, error):
            raise OutcomeUnknown(type(error).__name__) from None
        if reads_one_order and is_sent and _is_unmapped(exchange, error):
            raise OutcomeUnknown(BROKEN_ANSWER) from None
        raise _translated(exchange, error, sends=sends and (is_sent or not is_new_order)) from None


def _is_sent(*, is_new_order: bool) -> bool:
    return written.changes if is_new_order else written.begun


def _is_doubtful(exchange: Any, error: Exception) -> bool:
    """Some exchanges answer that an order timed out, or was taken in twice, with what ccxt takes for a refusal.

    Where that has not been looked into only two errors are a no: whoever lacks the money for an order, or is not known
    there, has not made it.
    """
    is_clear = isinstance(error, ccxt.InsufficientFunds) or type(error) is ccxt.AuthenticationError
    return not is_proven(exchange.id) and not is_clear


def _is_unmapped(exchange: Any, error: Exception) -> bool:
    """Whether the exchange has answered with an error that means nothing here."""
    return type(error) is ccxt.ExchangeError and not _is_refusal(exchange, error)


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
    if isinstance(error, ccxt.ExchangeError) and _is_refusal(exchange, error):
        return Refused("BROKER_REFUSED", _words(exchange, error))
    return _without_answer(error, sends=sends)


def _is_refusal(exchange: Any, error: Exception) -> bool:
    recovery = RECOVERY.get(exchange.id)
    return bool(recovery and recovery.refusals and re.search(recovery.refusals, str(error)))


def forget_answers(exchange: Any) -> None:
    """Of earlier calls: ccxt looks at the last answer, whichever it is of."""
    exchange.last_json_response = exchange.last_http_response = None
    exchange.options["hasAlreadyAuthenticatedSuccessfully"] = False


def _without_answer(error: Exception, *, sends: bool) -> BrokerError:
    name = type(error).__name__
    if not written.begun:
        return Unreachable(name)
    if not sends:
        return NotSent(name)
    return OutcomeUnknown("timeout" if isinstance(error, ccxt.RequestTimeout) else name)


def _words(exchange: Any, error: Exception) -> str:
    """The exchange's own words. ccxt may put the address before them, which some exchanges want with the key in it."""
    words = _ADDRESS.sub("", str(error).removeprefix(f"{exchange.id} "))
    for part in CREDENTIALS:
        secret = getattr(exchange, part, None)
        words = words.replace(secret, "***") if secret else words
    return reason(words)
