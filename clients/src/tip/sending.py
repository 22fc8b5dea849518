"""A command on its way: what is known of it when its sending, or reading how it went on, ends early."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import uuid4

from tip.exits import OUTCOME_UNKNOWN, WRONG_USAGE, Failure

T = TypeVar("T")


def once(key: str | None) -> str:
    """The caller's key, or a new one that a message can name when the outcome is unknown."""
    if key == "":
        raise Failure("--idempotency-key is empty", WRONG_USAGE, hint="leave it out for a new command")
    return str(uuid4()) if key is None else key


def interruptible(key: str | None, send: Callable[[], T]) -> T:
    """Ctrl-C while it is being sent leaves the outcome unknown, and the message says how to find out."""
    try:
        return send()
    except KeyboardInterrupt:
        repeat = f"repeat the same command with --idempotency-key {key} within 24 hours: it is done once"
        hint = repeat if key else "look whether it was done before you repeat it"
        raise Failure(
            "interrupted: it may have been done", OUTCOME_UNKNOWN, "interrupted", hint, details=_known(key)
        ) from None


@contextmanager
def accepted(what: str, hint: str, key: str | None, **ids: str) -> Iterator[None]:
    """From here on it is done: what fails now is only reading what became of it."""
    from tip_client import Timeout, TipError

    details = {**ids, **_known(key)}
    try:
        yield
    except KeyboardInterrupt:
        raise Failure(f"{what}, and goes on", OUTCOME_UNKNOWN, "accepted", hint, details=details) from None
    except Timeout as error:
        raise Failure(str(error), OUTCOME_UNKNOWN, "timeout", hint, details=details) from None
    except TipError as error:
        message, request = f"{what}; what became of it cannot be read: {error}", getattr(error, "request_id", None)
        raise Failure(message, OUTCOME_UNKNOWN, "accepted", hint, request, details) from None


def _known(key: str | None) -> dict[str, str]:
    return {} if key is None else {"idempotency_key": key}
