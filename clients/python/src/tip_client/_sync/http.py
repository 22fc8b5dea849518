# Made from _async/http.py by generate.py; `make client` makes it anew.
"""Sends requests, again and again until their deadline if need be. All decisions are `retries`'."""

import time
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar
from uuid import uuid4

import httpx

from tip_client.errors import ConnectionFailed, TipError, UnexpectedAnswer
from tip_client.problems import problem_of
from tip_client.request import Page, Request, following
from tip_client.retries import Attempts
from tip_client.settings import Settings
from tip_client.tls import tls_context
from tip_client.token_turns import ready
from tip_client.version import USER_AGENT

T = TypeVar("T")

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_chance = random.SystemRandom().random


class Http:
    """A pool of connections to one platform."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        headers = {"user-agent": USER_AGENT, "accept": "application/json"}
        self._client = httpx.Client(timeout=settings.timeout, verify=tls_context(settings.ca), headers=headers)
        self._base = settings.url.rstrip("/")

    def close(self) -> None:
        self._client.close()

    def call(self, request: Request[T], deadline: float | None = None) -> T:
        """The answer to the request; raises what is known when there is none. `deadline` may be sooner than usual."""
        seconds = self.settings.deadline if deadline is None else min(deadline, self.settings.deadline)
        attempts = Attempts(request, monotonic() + seconds, str(uuid4()))
        while True:
            try:
                return request.read(self._answer(request, attempts.request_id))
            except UnexpectedAnswer as failure:
                raise attempts.unreadable(failure) from None
            except TipError as failure:
                if attempts.settles(failure):
                    return request.read(None)
                delay = attempts.delay_after(failure, monotonic(), _chance())
            time.sleep(delay)

    def probe(self, path: str) -> tuple[Any, str | None, float]:
        """The answer to one GET that is not repeated, the Date it has, and how many seconds it took."""
        began = monotonic()
        try:
            answer = self._client.get(self._base + path)
        except httpx.RequestError as error:
            raise failure_of(error) from None
        if answer.status_code >= 300:
            raise problem_of(answer.status_code, answer.headers, answer.content)
        return _loaded(answer.content), answer.headers.get("date"), monotonic() - began

    def pages(self, request: Request[Page[T]]) -> Iterator[T]:
        """Every item of a list, page by page."""
        wanted: Request[Page[T]] | None = request
        while wanted is not None:
            page = self.call(wanted)
            for item in page.data:
                yield item
            wanted = following(wanted, page)

    def _answer(self, request: Request[Any], request_id: str | None) -> Any:
        ready(self.settings.token)
        try:
            answer = self._client.send(self._built(request, request_id))
        except httpx.RequestError as error:
            raise failure_of(error, request_id) from None
        if answer.status_code >= 300:
            raise problem_of(answer.status_code, answer.headers, answer.content)
        return _loaded(answer.content)

    def _built(self, request: Request[Any], request_id: str | None) -> httpx.Request:
        headers = {"x-request-id": request_id or "", **self.settings.headers()}
        if request.idempotency_key is not None:
            headers["idempotency-key"] = request.idempotency_key
        if request.if_match is not None:
            headers["if-match"] = f'"{request.if_match}"'
        if request.form is not None:
            return self._client.build_request(request.method, self._base + request.path, data=request.form)
        content = None
        if request.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(request.body).encode()
        query = request.query or None
        return self._client.build_request(
            request.method, self._base + request.path, params=query, content=content, headers=headers
        )

    @contextmanager
    def streamed(
        self, url: str, query: dict[str, str], headers: dict[str, str], silence_s: float
    ) -> Iterator[httpx.Response]:
        """An answer that is read as it comes; `silence_s` is how long nothing may come."""
        ready(self.settings.token)
        timeout = httpx.Timeout(self.settings.timeout, read=silence_s)
        sent = {**headers, **self.settings.headers()}
        try:
            with self._client.stream("GET", url, params=query, headers=sent, timeout=timeout) as answer:
                if answer.status_code >= 300:
                    raise problem_of(answer.status_code, answer.headers, answer.read())
                yield answer
        except httpx.RequestError as error:
            raise failure_of(error) from None


def failure_of(error: httpx.RequestError, request_id: str | None = None) -> ConnectionFailed:
    """Without the address, which the caller knows, and without anything that was sent."""
    fault = f"No answer from the platform ({type(error).__name__})."
    return ConnectionFailed(fault, was_sent=not isinstance(error, _NEVER_SENT), request_id=request_id)


def _loaded(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except (ValueError, RecursionError):
        raise UnexpectedAnswer("The answer is not JSON.") from None
