"""What ccxt raises becomes one of four words, and says nothing that is secret."""

from types import SimpleNamespace

import ccxt
import pytest

from tip_broker_ccxt.failures import understood_by
from tip_brokers import (
    BrokerError,
    CredentialRefused,
    DuplicateClientOrderId,
    NotSent,
    OutcomeUnknown,
    RateLimited,
    Refused,
    Unreachable,
)
from tip_brokers.checked_http import written

EXCHANGE = SimpleNamespace(id="venue", apiKey="the-key", secret="the-secret", password=None, uid="")


def raised(error: Exception, *, begun: bool, sends: bool = True) -> BrokerError:
    written.begun = begun
    with pytest.raises(BrokerError) as found, understood_by(EXCHANGE, sends=sends):
        raise error
    return found.value


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ccxt.InsufficientFunds("venue no"), Refused),
        (ccxt.InvalidOrder("venue no"), Refused),
        (ccxt.DuplicateOrderId("venue no"), DuplicateClientOrderId),
        (ccxt.AuthenticationError("venue no"), CredentialRefused),
        (ccxt.PermissionDenied("venue no"), Refused),
        (ccxt.RateLimitExceeded("venue no"), RateLimited),
        (ccxt.InvalidNonce("venue no"), NotSent),
        (ccxt.ExchangeError("venue whatever"), OutcomeUnknown),
        (ccxt.ExchangeNotAvailable("venue whatever"), OutcomeUnknown),
        (ccxt.RequestTimeout("venue whatever"), OutcomeUnknown),
        (ccxt.BadResponse("venue whatever"), OutcomeUnknown),
        (KeyError("id"), OutcomeUnknown),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
def test_what_was_written_is_refused_or_else_unknown(error: Exception, expected: type[BrokerError]) -> None:
    assert type(raised(error, begun=True)) is expected


@pytest.mark.parametrize("error", [ccxt.NetworkError("x"), ccxt.RequestTimeout("x"), ccxt.ExchangeError("x")])
def test_what_was_not_written_is_not_sent(error: Exception) -> None:
    assert type(raised(error, begun=False)) is Unreachable


def test_a_failed_read_of_markets_is_no_send() -> None:
    assert type(raised(ccxt.NetworkError("x"), begun=True, sends=False)) is NotSent


def test_no_message_holds_an_address_or_a_secret() -> None:
    answered = "venue GET https://venue.example/order?key=the-key&signature=abc 400 Bad the-key the-secret"

    message = str(raised(ccxt.BadRequest(answered), begun=True))

    assert "Bad" in message
    assert not [word for word in ("the-key", "the-secret", "signature", "venue.example") if word in message]
