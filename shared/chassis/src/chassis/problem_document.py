"""The error catalogue of the manual, made from the table of problems: `python -m chassis.problem_document`."""

import sys
from collections.abc import Iterator

from chassis.problem_types import TYPES

_HEAD = """# Error catalogue

Made by `python -m chassis.problem_document` from the table of problems; a test fails when this file and it differ.

Errors are `application/problem+json` (RFC 9457) with `type`, `title`, `status`, `detail`, `instance`, `code` and
`request_id`, plus `errors` for fields and `reasons` for controls. Others are plain text at
`GET /v1/accounts/outbox/health` and `DELETE /v1/users/me`, those of RFC 6749 at `/oauth/token`, and pages for people.

Branch on `code`, which is stable, and never on `detail`. The request id finds the request in the platform's logs.
`/docs/problems/<code>` of a running platform has each of them with the operations
that answer with it; the [contract](../contract.md#http) has the rules.

| status | retry? |
|---|---|
| 400, 404, 405, 412 to 415, 422, 431, 501 | no: the answer stays the same until something else changes |
| 401, 403 | with another credential, or with the entitlement that is named |
| 409 | see the code: some pass by themselves |
| 408, 429, 502, 503 | yes, no sooner than any `Retry-After` says; commands with the same `Idempotency-Key` |
| 500 | a defect of ours: report it with its request id |
"""


def document() -> str:
    return "\n".join((_HEAD, *_sections()))


def _sections() -> Iterator[str]:
    for status in sorted({status for kind in TYPES.values() for status in kind.statuses}):
        yield f"## Status {status}\n"
        yield "| code | means | do |\n|---|---|---|"
        for code, kind in TYPES.items():
            if status in kind.statuses:
                yield f"| `{code}` | {kind.meaning} | {kind.remedy} |"
        yield ""


if __name__ == "__main__":
    sys.stdout.write(document())
