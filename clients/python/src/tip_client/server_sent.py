"""Server-Sent Events out of bytes, and why a stream ended as an exception."""

import json
from collections.abc import Mapping
from typing import Any

from tip_client.errors import TipError, UnexpectedAnswer
from tip_client.problems import error_of

LONGEST_EVENT = 2**20
_ENDS: Mapping[str, tuple[int, str]] = {
    "credential_ended": (401, "unauthenticated"),
    "unauthenticated": (401, "unauthenticated"),
    "permission_ended": (403, "forbidden"),
    "forbidden": (403, "forbidden"),
    "account_not_found": (404, "not_found"),
    "epoch_ended": (400, "out_of_range"),
    "out_of_range": (400, "out_of_range"),
    "stuck": (429, "stuck"),
    "too_many_streams": (429, "too_many_streams"),
}


class ServerSentParser:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._name, self._data = "", b""

    def feed(self, chunk: bytes) -> list[Mapping[str, Any] | TipError]:
        """The messages that are complete now; the last is the reason when the stream says that it ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) + len(self._data) > LONGEST_EVENT:
            raise UnexpectedAnswer("An event is longer than any of the platform's.")
        return [message for line in lines if (message := self._line(line.rstrip(b"\r"))) is not None]

    def _line(self, line: bytes) -> Mapping[str, Any] | TipError | None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"data":
            self._data += value
        elif not line and self._data:
            return self._dispatch()
        return None

    def _dispatch(self) -> Mapping[str, Any] | TipError:
        name, data, self._name, self._data = self._name, self._data, "", b""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise UnexpectedAnswer("An event is not JSON.")
        if name == "end":
            return end_of(str(message.get("code", "")), str(message.get("detail", "")))
        return message


def end_of(code: str, detail: str) -> TipError:
    """Why the stream ended. What is none of the caller's doing passes: the stream is resumed."""
    status, problem = _ENDS.get(code, (503, "unavailable"))
    return error_of(status, problem, detail)
