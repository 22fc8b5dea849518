"""The public API, called as whoever uses the console: it decides what they may see and do, and the console nothing."""

import json
import re
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from chassis import logs, tracing

log = logs.get(__name__)

_TIMEOUT = httpx.Timeout(10.0, connect=2.0)
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=20.0)
_PAGE, _MOST_PAGES = 99, 11
"""A thousand of anything; a request for a hundred and more at once counts as heavy."""
MOST = _PAGE * _MOST_PAGES
"""So many has a list that was not read to its end."""
_UNSENDABLE = (UnicodeError, httpx.LocalProtocolError, httpx.InvalidURL)
"""Of values that no header or address can have: they were not sent."""
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_NO_ANSWER = (httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT)
"""Of whatever stands in front of a service that does not answer."""
_TRADING = "intents|orders|refusals|positions|balances|statement|bulk-operations|quotes|refresh"
_PARTS = tuple(
    (re.compile(pattern), part)
    for pattern, part in (
        (r"/v1/accounts/[^/]+/events(/ticket|/streams)?", "The event stream (stream-gateway)"),
        (rf"/v1/accounts/[^/]+/({_TRADING})(/.*)?", "The service for orders (intents)"),
        (r"/\.well-known/log-jwks\.json", "The service for orders (intents)"),
        (r"/v1/(accounts|brokers)(/.*)?", "The service for accounts (accounts)"),
        (r"/v1/controls(/.*)?", "The service for controls (controls)"),
        (r"/(v1|oauth|\.well-known)/.*", "The service for sign-in and people (identity)"),
    )
)
"""Who answers at a path, for people who are to learn what is away. The first that matches."""
_PROVIDER = "The provider that signs people in"


class PlatformAway(Exception):
    """The platform does not answer at the moment. Nothing was changed: try again."""


class OutcomeUnknown(PlatformAway):
    """It is not known whether this was done: the platform did not answer. Look before you repeat it."""


class ApiProblem(Exception):
    """What the API refused, in its own words (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail") or problem.get("error_description") or f"The API answered {status}.")
        super().__init__(self.detail)

    @property
    def reasons(self) -> list[dict[str, Any]]:
        return list(self.problem.get("reasons", []))

    @property
    def errors(self) -> list[dict[str, str]]:
        return list(self.problem.get("errors", []))


class Api:
    """Connections to the platform, shared by all callers."""

    def __init__(self, address: str, authority: str = "") -> None:
        context = ssl.create_default_context()
        if authority:
            context.load_verify_locations(cadata=authority)
        self._address = address
        self._client = httpx.Client(base_url=address, verify=context, timeout=_TIMEOUT, limits=_LIMITS, trust_env=False)

    def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        is_change: bool | None = None,
    ) -> Any:
        """The answer's JSON; raises ApiProblem if it is a refusal; if there is none, PlatformAway or OutcomeUnknown.

        The latter of a change, which all but GET are unless said otherwise.
        """
        is_change = method != "GET" if is_change is None else is_change
        try:
            answer = self._client.request(
                method, path, headers={**headers, **_traced()}, params=_given(query), json=body, data=form
            )
        except _UNSENDABLE:
            detail = "A value has characters that the API does not take."
            raise ApiProblem(422, {"code": "invalid", "detail": detail}) from None
        except httpx.HTTPError as error:
            log.warning("api_call_failed", method=method, error=type(error).__name__)
            raise self._unsent(path) if isinstance(error, _NOT_SENT) else self._unanswered(path, is_change) from None
        if _is_no_answer(answer):
            raise self._unanswered(path, is_change)
        return _read(answer)

    def download(self, path: str, headers: Mapping[str, str], query: Mapping[str, Any]) -> "Download":
        """A file, as it comes; raises like `send` before its first byte."""
        request = self._client.build_request("GET", path, headers={**headers, **_traced()}, params=_given(query))
        try:
            answer = self._client.send(request, stream=True)
            if answer.status_code != httpx.codes.OK:
                answer.read()
        except httpx.HTTPError as error:
            log.warning("api_call_failed", method="GET", error=type(error).__name__)
            raise self._unsent(path) if isinstance(error, _NOT_SENT) else self._unanswered(path) from None
        if answer.status_code != httpx.codes.OK:
            if not _is_no_answer(answer):
                _read(answer)
            raise self._unanswered(path)
        return Download(answer.iter_bytes(), answer.close)

    def close(self) -> None:
        self._client.close()

    def _unanswered(self, path: str, is_change: bool = False) -> PlatformAway:
        """What it means that a call was sent and not answered: of a read no more than that."""
        if is_change:
            return OutcomeUnknown()
        own = path.removeprefix(self._address)
        return _away(next((part for pattern, part in _PARTS if pattern.fullmatch(own)), _PROVIDER))

    def _unsent(self, path: str) -> PlatformAway:
        is_own = path.removeprefix(self._address).startswith("/")
        return _away("The platform" if is_own else _PROVIDER)


@dataclass(frozen=True)
class Download:
    """A file on its way. Whoever does not read it to its end closes it."""

    chunks: Iterator[bytes]
    close: Callable[[], None]


@dataclass(frozen=True)
class Caller:
    """The API as one caller: somebody with a token, or a key."""

    api: Api
    headers: Mapping[str, str] = field(repr=False)

    def get(self, path: str, **query: Any) -> Any:
        return self.api.send("GET", path, self.headers, query=query)

    def download(self, path: str, **query: Any) -> Download:
        return self.api.download(path, self.headers, query)

    def all(self, path: str, **query: Any) -> list[Any]:
        """Every item of a list that has pages, up to a number that no page of ours shows."""
        found: list[Any] = []
        cursor = None
        for _ in range(_MOST_PAGES):
            page = self.get(path, **query, limit=_PAGE, next_cursor=cursor)
            found += page["data"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        return found

    def find(self, path: str) -> Any:
        """The same; None where there is nothing."""
        try:
            return self.get(path)
        except ApiProblem as problem:
            if problem.status == 404:
                return None
            raise

    def at_version(self, version: str) -> "Caller":
        """The same, whose changes are refused if somebody made one since that version; empty: none was shown."""
        if not version:
            return self
        if not (version.isascii() and version.isdecimal()):
            raise ApiProblem(412, {"code": "precondition_failed", "detail": "The resource has another version."})
        return replace(self, headers={**self.headers, "If-Match": f'"{version}"'})

    def send_harmless(self, method: str, path: str) -> Any:
        """What leaves nothing that anybody would have to look at, whatever its method."""
        return self.api.send(method, path, self.headers, is_change=False)

    def send(self, method: str, path: str, body: Any = None, *, idempotency_key: str = "", **query: Any) -> Any:
        once = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self.api.send(method, path, {**self.headers, **once}, query=query, body=body)


def with_token(api: Api, token: str) -> Caller:
    return Caller(api, {"Authorization": f"Bearer {token}"})


def with_key(api: Api, key: str) -> Caller:
    return Caller(api, {"x-api-key": key})


def _given(query: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The parameters that have a value."""
    return {name: value for name, value in (query or {}).items() if value not in (None, "")} or None


def _traced() -> dict[str, str]:
    """So that one request id finds the page and every call it made."""
    trace = tracing.current.get()
    return {"x-request-id": trace.request_id, "traceparent": trace.traceparent} if trace else {}


def _away(part: str) -> PlatformAway:
    return PlatformAway(f"{part} does not answer at the moment. Nothing was changed: try again.")


def _is_no_answer(answer: httpx.Response) -> bool:
    """Whether it is of somebody in front of the service; what a service refuses with 503 has a code of its own."""
    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
        return answer.status_code in _NO_ANSWER
    content = _content(answer)
    return not (isinstance(content, dict) and content.get("code"))


def _content(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content) if answer.content else None
    except ValueError:
        return {"detail": answer.text[:500]} if answer.status_code >= 400 else None


def _read(answer: httpx.Response) -> Any:
    content = _content(answer)
    if answer.status_code >= 300:
        raise ApiProblem(answer.status_code, content if isinstance(content, dict) else {})
    return content
