"""The exit codes of `tip`, and a failure that ends a command with one of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DONE = 0
REFUSED = 1
"""The platform refused, or a command of the operator failed."""
WRONG_USAGE = 2
UNREACHABLE = 3
"""Not running, or no answer."""
OUTCOME_UNKNOWN = 4
"""Timed out: it may have been done, or still be done."""


@dataclass(eq=False)
class Failure(Exception):
    """What went wrong, and what to do about it."""

    message: str
    exit_code: int = REFUSED
    code: str | None = None
    """The platform's stable code of the problem."""
    hint: str | None = None
    request_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """More members of the JSON document."""

    def lines(self) -> list[str]:
        """For people: the fault, then what to do, then what finds it in the logs."""
        request = f"request {self.request_id}" if self.request_id else None
        return [f"tip: {self.message}", *(f"     {line}" for line in (self.hint, request) if line)]

    def document(self) -> dict[str, Any]:
        """For programs."""
        known = {"code": self.code, "message": self.message, "hint": self.hint, "request_id": self.request_id}
        return {"error": {**known, "exit_code": self.exit_code, **self.details}}
