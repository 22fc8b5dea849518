"""Tickets for browsers, whose EventSource sends no headers: each opens one stream of one account, once and soon.

A ticket stands for the credential that requested it, so that whatever ends the credential ends the stream. Redis keeps
the credential sealed under a key that is made of the ticket and of the platform's own: neither who reads Redis, nor who
reads addresses in somebody's log, nor who writes to Redis gains anything.
"""

import hashlib
import json
import secrets
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from redis.exceptions import RedisError

from chassis import problems, sealing
from chassis.authentication import PresentedCredentials
from stream_gateway import redis_client

KEPT_SECONDS = 30
_BYTES = 32
_LONGEST = 64


class Ticket(NamedTuple):
    text: str
    expires_at: datetime


class Tickets:
    def __init__(self, redis_url: str, key: str) -> None:
        self._redis = redis_client.connect(redis_url)  # of which a flood of guesses takes all, and delays tickets alone
        self._key = key.encode()

    async def issue(self, presented: PresentedCredentials, account_id: UUID) -> Ticket:
        text = secrets.token_urlsafe(_BYTES)
        content = json.dumps([presented.credentials, presented.organization]).encode()
        sealed = sealing.seal(self._sealing_key(text), content, account_id.bytes)
        expires_at = datetime.now(UTC) + timedelta(seconds=KEPT_SECONDS)
        try:
            await self._redis.set(_name(text), sealed, ex=KEPT_SECONDS)
        except (RedisError, OSError):
            raise _unavailable() from None
        return Ticket(text, expires_at)

    async def redeem(self, text: str, account_id: UUID | None, address: str | None) -> PresentedCredentials | None:
        """What the ticket stands for, once; None if it is spent, late, invented, or another account's."""
        if account_id is None or len(text) > _LONGEST:
            return None
        try:
            sealed = await self._redis.getdel(_name(text))
        except (RedisError, OSError):
            raise _unavailable() from None
        if not isinstance(sealed, bytes):
            return None
        try:
            content = sealing.unseal(self._sealing_key(text), sealed, account_id.bytes)
        except sealing.BrokenSeal:
            return None
        credentials, organization = json.loads(content)
        return PresentedCredentials(tuple((kind, value) for kind, value in credentials), organization, address)

    def _sealing_key(self, text: str) -> bytes:
        return hashlib.sha256(b"\n".join((b"ticket", self._key, text.encode()))).digest()


def _name(text: str) -> str:
    return f"tip:ticket:{hashlib.sha256(text.encode()).hexdigest()}"


def _unavailable() -> problems.Problem:
    return problems.unavailable("No ticket can be given or taken at the moment. Try again.")
