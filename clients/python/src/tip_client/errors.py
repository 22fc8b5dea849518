"""What can go wrong, as exceptions: one family for each kind of problem that the platform reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class TipError(Exception):
    """Everything that this package raises by itself."""

    is_transient = False
    """Whether the same request may pass a moment later."""
    may_have_been_done = False
    """Whether a command may have been done although it was not answered so."""
    retry_after: float | None = None
    """Seconds that the platform wishes to be left alone."""


class ConfigurationError(TipError):
    """The client cannot be made from what the environment, the profile or the caller say."""


class Timeout(TipError, TimeoutError):
    """What was waited for has not come in time. The order or operation goes on."""


class OrderEnded(TipError):
    """The order has ended and will never have the status that was waited for; `order` is how it ended."""

    def __init__(self, message: str, order: Any) -> None:
        super().__init__(message)
        self.order = order


class UnexpectedAnswer(TipError):
    """The answer is none of this API: another server, or a version that is not compatible."""


class ConnectionFailed(TipError):
    """There was no answer. `request_id` finds the request in the platform's logs if it arrived."""

    is_transient = True

    def __init__(self, message: str, *, was_sent: bool, request_id: str | None = None) -> None:
        super().__init__(message)
        self.may_have_been_done = was_sent
        self.request_id = request_id


class OutcomeUnknown(TipError):
    """It is not known whether the command was done.

    Repeat it with the same `idempotency_key`, within 24 hours: it is done once, and answered as the first time. Without
    a key, read what there is before you repeat it. `__cause__` is the last failure.
    """

    def __init__(self, message: str, *, idempotency_key: str | None, request_id: str | None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.request_id = request_id


class LoginRefused(TipError):
    """The provider gave no tokens; `code` is its error of RFC 6749 or RFC 8628, such as `access_denied`."""

    def __init__(self, code: str, description: str = "") -> None:
        super().__init__(f"{code}: {description}" if description else code)
        self.code = code


@dataclass(frozen=True)
class FieldError:
    """A field that was refused; `pointer` is a JSON pointer into the body that was sent."""

    pointer: str
    code: str
    message: str


@dataclass(frozen=True)
class Reason:
    """A control that refused a command."""

    code: str
    control: str
    version: int | None
    message: str


class ApiError(TipError):
    """The platform's answer is a problem; `code` is stable, `detail` is for people."""

    def __init__(self, status: int, code: str, detail: str = "", members: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{status} {code}: {detail}" if detail else f"{status} {code}")
        self.status = status
        self.code = code
        self.detail = detail
        self.members = dict(members or {})
        """Everything else that the problem says, such as `intent_id` of `client_id_taken`."""
        self.request_id: str | None = None
        """Finds the request in the platform's logs."""

    @property
    def errors(self) -> tuple[FieldError, ...]:
        """The fields that were refused."""
        return tuple(
            FieldError(_text(entry, "pointer"), _text(entry, "code"), _text(entry, "message"))
            for entry in _entries(self.members.get("errors"))
        )

    @property
    def pointer(self) -> str | None:
        """Where in the body the first refused field is."""
        return self.errors[0].pointer if self.errors else None

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The controls that refused the command."""
        return tuple(
            Reason(_text(entry, "code"), _text(entry, "control"), entry.get("version"), _text(entry, "message"))
            for entry in _entries(self.members.get("reasons"))
        )


def _entries(value: Any) -> Sequence[Mapping[str, Any]]:
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list) else []


def _text(entry: Mapping[str, Any], name: str) -> str:
    return str(entry.get(name, ""))


class InvalidRequest(ApiError):
    """The request is wrong in itself; `errors` and `pointer` say where."""


class Unauthenticated(ApiError):
    """No credential, or one that is unknown, disabled, revoked or expired."""


class LoginEnded(Unauthenticated):
    """The stored login has run out, was revoked, or was used by somebody else as well: sign in again."""

    def __init__(self, detail: str) -> None:
        super().__init__(401, "login_ended", detail)


class Forbidden(ApiError):
    """A known caller without the role, scope, permission, environment, organization or entitlement."""


class EntitlementRequired(Forbidden):
    """The organization lacks an entitlement: `members["entitlement"]`."""


class NotFound(ApiError):
    """It is not there, or belongs to another organization."""


class Conflict(ApiError):
    """The state of things forbids it."""


class IntentTerminal(Conflict):
    """The order has ended."""


class IntentBusy(Conflict):
    """A replacement or cancel of the order is pending."""


class RequestInFlight(Conflict):
    """A request with this idempotency key is being done at this moment."""

    is_transient = True
    may_have_been_done = True


class ClientIdTaken(Conflict):
    """Another order of the account has this `client_id`."""

    @property
    def intent_id(self) -> str | None:
        """The order that has it."""
        return self.members.get("intent_id")


class LimitReached(Conflict):
    """There are as many as there may be."""


class PreconditionFailed(ApiError):
    """It was changed meanwhile: its version is another one."""


class Refused(ApiError):
    """The command is well formed and was refused."""


class ControlRejected(Refused):
    """Controls refuse the command; `reasons` has every one of them."""


class BrokerCannot(Refused):
    """The account's broker cannot do what was ordered; `pointer` says what."""


class IdempotencyKeyReused(Refused):
    """The idempotency key was used for another command."""


class BatchRejected(Refused):
    """One command of an atomic batch was refused, so none was done: `members["results"]`."""


class RateLimited(ApiError):
    """Too many requests, or too many at a time."""

    is_transient = True


class Unavailable(ApiError):
    """The platform cannot answer at the moment."""

    is_transient = True


class Overloaded(Unavailable):
    """Commands wait too long to be sent, so no order is taken for a moment. A cancel passes."""


class ServerError(ApiError):
    """A defect of the platform; `request_id` finds it in its logs."""

    may_have_been_done = True


class PositionOutOfRange(ApiError):
    """Events cannot be resumed there: the log was restored to an earlier state, or never came that far.

    Read the account again, then follow its events without a position.
    """
