"""Which browser applications may call: answers to preflight requests, and the headers that let a page read an answer.

Nobody is let in by this: every request still needs its credential, and no cookie is ever one. Without configured
origins there is nothing here, and browsers keep pages of other addresses away.
"""

import re
from collections.abc import Iterable

_ORIGIN = re.compile(r"(http://(?!.*:80$)|https://(?!.*:443$))[a-z0-9.-]+(:[1-9][0-9]{0,4})?", re.ASCII)
METHODS = "GET, POST, PUT, PATCH, DELETE"
REQUEST_HEADERS = (
    "authorization, content-type, idempotency-key, if-match, last-event-id, traceparent, x-api-key, x-organization-id, "
    "x-request-id"
)
ANSWER_HEADERS = (
    "ETag, Idempotent-Replayed, Location, RateLimit, RateLimit-Policy, Retry-After, traceparent, WWW-Authenticate, "
    "X-Request-Id"
)
Headers = list[tuple[str, str]]
_ANSWER: Headers = [("Access-Control-Expose-Headers", ANSWER_HEADERS)]
_PREFLIGHT: Headers = [
    ("Access-Control-Allow-Methods", METHODS),
    ("Access-Control-Allow-Headers", REQUEST_HEADERS),
    ("Access-Control-Max-Age", "600"),
]


def is_origin(text: str) -> bool:
    """Whether it is an origin as browsers send it: lower case, no default port, no path, and no pattern."""
    return _ORIGIN.fullmatch(text) is not None


class Cors:
    """`origins` are those of the pages that may call."""

    def __init__(self, origins: Iterable[str] = ()) -> None:
        self._origins = frozenset(origins)

    def __bool__(self) -> bool:
        return bool(self._origins)

    def of_request(self, method: str, origin: str | None) -> Headers:
        """The headers of an answer to a request from there. Caches must not show it to another origin.

        The answer to OPTIONS has besides what a browser wants to know before it sends the request itself.
        """
        if not self._origins:
            return []
        if origin not in self._origins:
            return [("Vary", "Origin")]
        headers = [("Vary", "Origin"), ("Access-Control-Allow-Origin", str(origin))]
        return [*headers, *(_PREFLIGHT if method == "OPTIONS" else _ANSWER)]
