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
from tip_brokers.protocol import BROKEN_ANSWER

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


@pytest.mark.parametrize(
    ("exchange", "error", "expected"),
    [
        ("okx", ccxt.ExchangeError("okx whatever"), BROKEN_ANSWER),
        ("okx", ccxt.ExchangeNotAvailable("okx whatever"), "ExchangeNotAvailable"),
        ("okx", ccxt.RequestTimeout("okx whatever"), "timeout"),
        ("kraken", ccxt.ExchangeError("kraken whatever"), BROKEN_ANSWER),
    ],
)
def test_an_error_that_ccxt_does_not_know_is_of_the_one_order_that_was_read(
    exchange: str, error: Exception, expected: str
) -> None:
    written.begun = True
    read = SimpleNamespace(**{**vars(EXCHANGE), "id": exchange})

    with pytest.raises(OutcomeUnknown) as found, understood_by(read, reads_one_order=True):
        raise error
    assert found.value.reason == expected


def test_a_proven_exchanges_own_no_to_the_read_of_one_order_is_a_refusal() -> None:
    written.begun = True
    kraken = SimpleNamespace(**{**vars(EXCHANGE), "id": "kraken"})

    with pytest.raises(Refused), understood_by(kraken, reads_one_order=True):
        raise ccxt.ExchangeError("kraken EGeneral:Permission denied")


UNSURE = [ccxt.InvalidOrder, ccxt.DuplicateOrderId, ccxt.OrderNotFound, ccxt.BadSymbol, ccxt.BadRequest,
          ccxt.OperationRejected, ccxt.PermissionDenied, ccxt.AccountSuspended, ccxt.RateLimitExceeded,
          ccxt.DDoSProtection, ccxt.InvalidNonce, ccxt.ExchangeError, ccxt.NotSupported,
          ccxt.RequestTimeout]  # fmt: skip


def of_new_order(exchange_id: str, error: Exception, *, begun: bool) -> type[BrokerError]:
    written.begun = written.changes = begun
    exchange = SimpleNamespace(**{**vars(EXCHANGE), "id": exchange_id})
    with pytest.raises(BrokerError) as found, understood_by(exchange, is_new_order=True):
        raise error
    return type(found.value)


@pytest.mark.parametrize("error", UNSURE)
def test_what_an_unproven_exchange_answers_to_a_new_order_is_unknown_whatever_ccxt_calls_it(
    error: type[Exception],
) -> None:
    assert of_new_order("okx", error("okx no"), begun=True) is OutcomeUnknown


@pytest.mark.parametrize("exchange", ["okx", "kraken"])
def test_a_new_order_of_somebody_without_money_or_with_an_unknown_key_is_refused_everywhere(exchange: str) -> None:
    assert of_new_order(exchange, ccxt.InsufficientFunds("no"), begun=True) is Refused
    assert of_new_order(exchange, ccxt.AuthenticationError("no"), begun=True) is CredentialRefused


def test_what_ccxt_refuses_before_it_writes_is_refused_everywhere() -> None:
    assert of_new_order("okx", ccxt.InvalidOrder("okx no"), begun=False) is Refused


def test_what_a_proven_exchange_answers_to_a_new_order_counts() -> None:
    assert of_new_order("binance", ccxt.InvalidOrder("binance no"), begun=True) is Refused


def test_a_failed_read_of_markets_is_no_send() -> None:
    assert type(raised(ccxt.NetworkError("x"), begun=True, sends=False)) is NotSent


def test_no_message_holds_an_address_or_a_secret() -> None:
    answered = "venue GET https://venue.example/order?key=the-key&signature=abc 400 Bad the-key the-secret"

    message = str(raised(ccxt.BadRequest(answered), begun=True))

    assert "Bad" in message
    assert not [word for word in ("the-key", "the-secret", "signature", "venue.example") if word in message]
