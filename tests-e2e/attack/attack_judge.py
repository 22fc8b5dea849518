"""What every answer must be, whatever was requested: no defect, no silence, and every refusal in one form."""

import json

from attack_http import Answer

MEMBERS = ("type", "title", "status", "detail", "instance", "code", "request_id")
# The specification has two endpoints with errors in plain text, RFC 6749 and its like a few with errors of their own,
# and whoever signs in meets pages.
PLAIN_TEXT = ("/v1/accounts/outbox/health", "/v1/users/me")
TOKENS = ("/oauth/token", "/oauth/revoke", "/oauth/device_authorization")
PAGES = ("/login", "/oauth/authorize")
PAGE = 4_096
"""How long a page may be that refuses."""
NO_DEFECT = (501, 505)
"""What HTTP has for a coding or a version that a server does not speak. A healthy platform never answers 503."""
ECHO = 1_024
"""How much longer than its request a refusal may be."""


def wrong(method: str, path: str, request_bytes: int, answer: Answer) -> str | None:
    """What is wrong with the answer, or None."""
    if answer.status >= 500 and answer.status not in NO_DEFECT:
        return f"answered {answer.status}"
    if b"Traceback (most recent call last)" in answer.body:
        return "a stack trace is shown"
    if answer.status < 400:
        return None
    if len(answer.body) > request_bytes + (PAGE if _is_page(path, answer) else ECHO):
        return "a refusal is much longer than its request"
    if method == "HEAD":
        return None
    return _wrong_refusal(path, answer)


def _wrong_refusal(path: str, answer: Answer) -> str | None:
    kind = answer.header("content-type").partition(";")[0]
    if (path in PLAIN_TEXT and kind == "text/plain") or (path in TOKENS and kind == "application/json"):
        return None
    if _is_page(path, answer):
        return None
    if kind != "application/problem+json":
        return f"a refusal is not problem+json ({answer.status})"
    try:
        body = json.loads(answer.body)
    except ValueError:
        return "a problem is not JSON"
    if missing := [name for name in MEMBERS if name not in body]:
        return f"a problem lacks {', '.join(missing)} ({answer.status})"
    return None if body["status"] == answer.status else "a problem has another status than its answer"


def _is_page(path: str, answer: Answer) -> bool:
    of_people = path in PAGES or path.startswith("/login/")
    return of_people and answer.header("content-type").startswith("text/html")
