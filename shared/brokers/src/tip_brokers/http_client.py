"""One HTTP exchange with the broker: the whole answer within its bounds, or why there is none."""

import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

import requests
from requests import exceptions
from urllib3.exceptions import ReadTimeoutError

from tip_brokers.checked_http import AnswerTooLarge, CheckedAdapter, read_whole, written
from tip_brokers.protocol import BROKEN_ANSWER, BrokerError, Check, NotSent, OutcomeUnknown, Unreachable, no_check

CONNECT_SECONDS = 1.0
READ_SECONDS = 3.0


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class HttpClient:
    """One address, shared by all accounts that trade there. Each thread keeps its own connections open."""

    def __init__(
        self, address: str, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS
    ) -> None:
        self.address = address.rstrip("/")
        self.call_seconds = connect_seconds + read_seconds
        self._timeouts = (connect_seconds, read_seconds)
        self._here = threading.local()

    def call(self, method: str, path: str, headers: Mapping[str, str], check: Check = no_check, **more: Any) -> Answer:
        """The answer, whatever its status; OutcomeUnknown or NotSent when there is none."""
        written.start(check)
        try:
            with self._session().request(
                method,
                self.address + path,
                headers=headers,
                timeout=self._timeouts,
                allow_redirects=False,
                stream=True,
                **more,
            ) as response:
                return Answer(response.status_code, response.headers, read_whole(response))
        except AnswerTooLarge:
            raise OutcomeUnknown("answer_too_large") from None
        except exceptions.RequestException as error:
            raise _failure(error) from None

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._here, "session", None)
        if session is None:
            session = self._here.session = requests.Session()
            session.trust_env = False  # no proxy, no netrc: a password there must not replace the account's keys
            adapter = CheckedAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
            session.mount("http://", adapter)
            session.mount("https://", adapter)
        return session


def _failure(error: exceptions.RequestException) -> BrokerError:
    """What an exchange without an answer means. Before the first byte was written, certainly nothing was done."""
    if written.begun:
        return OutcomeUnknown(_reason(error))
    if isinstance(error, exceptions.ConnectTimeout):
        return Unreachable("connect_timeout")
    if isinstance(error, exceptions.ConnectionError):  # refused, no such name, no TLS
        return Unreachable("connection_refused")
    return NotSent(type(error).__name__)  # the request itself cannot be sent: that is no fault of the line


def _reason(error: exceptions.RequestException) -> str:
    if isinstance(error, exceptions.Timeout) or (error.args and isinstance(error.args[0], ReadTimeoutError)):
        return "timeout"
    return "connection_lost" if isinstance(error, exceptions.ConnectionError) else BROKEN_ANSWER
