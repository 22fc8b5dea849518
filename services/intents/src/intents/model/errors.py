"""Why a command is not accepted, in the words of the contract. Their statuses are one table in `routes`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import control_rules


class Refusal(Exception):
    """A command is not accepted, and nothing is wrong with the platform."""


class AccountNotFound(Refusal):
    """There is nothing here that you may see."""

    code = "not_found"


class IntentNotFound(Refusal):
    """There is nothing here that you may see."""

    code = "not_found"


class BulkOperationNotFound(Refusal):
    """There is nothing here that you may see."""

    code = "not_found"


class LimitReached(Refusal):
    """The account has as many as it may."""


class Forbidden(Refusal):
    """The key is for another environment than the account."""


class EntitlementRequired(Refusal):
    """The organization lacks the entitlement for this."""

    def __init__(self, entitlement: str) -> None:
        super().__init__()
        self.problem = {"entitlement": entitlement}


class IntentTerminal(Refusal):
    """The intent has ended; nothing can be changed any more."""


class IntentBusy(Refusal):
    """Another change of the intent is on its way; try again when it has ended."""


class ClientIdTaken(Refusal):
    """An intent of this account has this client_id already: read it by intent_id, or choose another client_id."""

    def __init__(self, intent_id: UUID) -> None:
        super().__init__()
        self.problem = {"intent_id": str(intent_id)}


class InvalidReplacement(Refusal):
    """The replacement does not fit the intent."""

    code = "invalid"

    def __init__(self, pointer: str, code: str, message: str) -> None:
        super().__init__()
        self.problem = {"errors": [{"pointer": pointer, "code": code, "message": message}]}


class BrokerCannot(Refusal):
    """The account's broker cannot do this; `errors` says what, and GET /v1/brokers what it can."""

    def __init__(self, pointer: str, message: str, broker: str) -> None:
        super().__init__()
        self.problem = {"errors": [{"pointer": pointer, "code": "broker_cannot", "message": f"{broker} {message}"}]}

    def within(self, spec: str, leg: str) -> "BrokerCannot":
        """The same of a leg of an order group, whose spec does not stand at `spec` but there."""
        [error] = self.problem["errors"]
        error["pointer"] = error["pointer"].replace(spec, f"/command/payload{leg}", 1)
        return self


class ControlRejected(Refusal):
    """Controls of the account forbid this; `reasons` says which and why."""

    def __init__(
        self,
        reasons: Sequence[dict[str, Any]],
        symbol: str,
        moment: datetime,
        order_side: str | None = None,
        missing_prices: control_rules.MissingPrices | None = None,
    ) -> None:
        super().__init__()
        self.reasons, self.symbol, self.moment, self.order_side = list(reasons), symbol, moment, order_side
        self.missing_prices = missing_prices
        self.problem = {"reasons": self.reasons}


class Overloaded(Refusal):
    """Commands wait too long to be sent, so no CREATE or REPLACE is accepted for now. Nothing was written: try again.

    `backlog` is whose they are: "account", or "broker" for those of the organization's accounts at the broker.
    """

    def __init__(self, backlog: str) -> None:
        super().__init__()
        self.problem = {"backlog": backlog}


class NotReducing(Refusal):
    """The order could do more than close the position. Only the platform's own closing orders are refused so."""


class IdempotencyKeyReused(Refusal):
    """The idempotency key was used before with another body."""


class IdempotentRequestInFlight(Refusal):
    """The first request with this idempotency key has not ended yet."""


class StatementNotSigned(Refusal):
    """Nothing of this period is signed yet. Heads are signed every few seconds: try again later."""


class OutcomeUnknown(Exception):
    """The outcome is not known: ask with the same Idempotency-Key, or look at the list."""


class BatchRejected(Exception):
    """One command was refused, so none was accepted."""

    def __init__(self, results: Sequence[dict[str, Any]]) -> None:
        super().__init__()
        self.problem = {"results": list(results)}
