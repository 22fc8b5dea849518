"""When a token that renews itself is renewed: before a request is built, and after a stream has outlived one."""

import asyncio
from collections.abc import Callable

from tip_client.errors import ConnectionFailed, TipError, Unauthenticated
from tip_client.stored_login import StoredLogin

Token = str | Callable[[], str] | None


def ready(token: Token) -> None:
    """Renew it now if it is due, so that it only has to be read when headers are made."""
    if isinstance(token, StoredLogin) and token.is_due:
        token()


async def ready_in_thread(token: Token) -> None:
    """The same, while the event loop goes on."""
    if isinstance(token, StoredLogin) and token.is_due:
        await asyncio.to_thread(token)


def ended_token(failure: TipError) -> TipError:
    """A stream that was open ends with its token: the next connection has a new one, or is refused for good."""
    if isinstance(failure, Unauthenticated):
        return ConnectionFailed("The token of the stream has ended.", was_sent=True)
    return failure
