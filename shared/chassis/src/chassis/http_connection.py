"""gunicorn's HTTP/1.1 connection with our limits: what breaks them is answered here, without a thread or an app.

gunicorn itself waits for headers for ever, takes any length that is announced, and answers in plain text.
"""

import asyncio
import select
from http import HTTPStatus
from typing import Any

from gunicorn.asgi.parser import LimitRequestHeaders, LimitRequestLine, ParseError, UnsupportedTransferCoding
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.http.errors import ParseException

from chassis import http_rules, logs, problems, strict_json, tracing

log = logs.get(__name__)

LINGER_S = 2.0
"""How long a refused request is still read and dropped: closed on unread bytes, the connection would be reset, and
the caller might never see the answer."""

MAX_CHUNKS = 1024
"""Of one body: each is parsed and handed on by itself, on the event loop, however small it is."""


_HUNG_UP = getattr(select, "POLLRDHUP", 0)  # Linux


class Connection(ASGIProtocol):  # type: ignore[misc]
    """One caller's connection. `_awaited` is the part of a request that is being waited for."""

    def __init__(self, worker: Any) -> None:
        super().__init__(worker)
        self._awaited: str | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._body_bytes = self._body_chunks = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._arm_keepalive_timer()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.worker.unsent.discard(self)
        self._forget_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._closed:
            return
        if _has_hung_up(self.transport):
            self.transport.abort()
        else:
            super().data_received(data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._set_deadline(http_rules.BODY_S, self.transport.abort)  # nobody reads the answer

    def resume_writing(self) -> None:
        self._forget_deadline()
        super().resume_writing()

    def _feed_callback_parser(self, data: bytes) -> bool:
        try:
            self._callback_parser.feed(data)
        except problems.Problem as problem:
            self._refuse(problem)
            return False
        except (ParseError, ParseException, ValueError) as error:
            self._refuse(_problem(error))
            return False
        if self._body_bytes + self._callback_parser._chunk_remaining > strict_json.MAX_BYTES:
            self._refuse(http_rules.body_too_large())  # by what the next chunk announces
            return False
        self._watch_the_clock()
        return True

    def _watch_the_clock(self) -> None:
        """Each part of a request has a deadline from its start; receiving some of it does not extend the deadline."""
        awaited = self._outstanding()
        if awaited == self._awaited:
            return
        self._awaited = awaited
        self._forget_deadline()
        if awaited == "headers":
            self._cancel_keepalive_timer()
            self._set_deadline(http_rules.HEADERS_S, self._refuse, http_rules.headers_too_late())
        elif awaited == "body":
            self._set_deadline(http_rules.BODY_S, self._refuse, http_rules.body_too_late())

    def _outstanding(self) -> str | None:
        if self._current_request is None:
            return "headers"
        return None if self._body_receiver._complete else "body"

    def _on_headers_complete(self) -> bool:
        parser = self._callback_parser
        http_rules.check(parser.http_version, parser.headers, parser.content_length)
        self._body_bytes = self._body_chunks = 0
        return bool(super()._on_headers_complete())

    def _on_body(self, chunk: bytes) -> None:
        self._body_bytes += len(chunk)
        if self._body_bytes > strict_json.MAX_BYTES:
            raise http_rules.body_too_large()
        parser = self._callback_parser
        self._body_chunks += parser.is_chunked and parser._chunk_remaining == 0  # the end of one
        if self._body_chunks > MAX_CHUNKS:
            raise problems.Problem(413, detail=f"A body has at most {MAX_CHUNKS} chunks.")
        super()._on_body(chunk)

    def _is_websocket_upgrade(self, _request: Any) -> bool:
        return False  # nothing here speaks it, so the header means nothing

    def _send_error_response(self, status: int, _message: str, extra_headers: Any = ()) -> None:
        """A problem in place of gunicorn's plain text, without its words about the request."""
        if not self._closed:
            self._write(problems.Problem(status, detail=HTTPStatus(status).description, headers=dict(extra_headers)))

    def _refuse(self, problem: problems.Problem) -> None:
        """Answer in the app's place and end the connection."""
        self._write(problem)
        self._closed = True
        self._cancel_keepalive_timer()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._set_deadline(LINGER_S, self.transport.abort)
        if self._body_receiver is not None:
            self._body_receiver.signal_disconnect()
        self._request_ready.set()

    def _write(self, problem: problems.Problem) -> None:
        trace = tracing.Trace.begin()
        target = (self._callback_parser.path or b"/").partition(b"?")[0].decode("latin-1")
        match = problems.RouteMatch("", "unmatched", target)
        self._safe_write(http_rules.closing_answer(problems.render(problem, match, trace.request_id), trace))
        log.info("request_refused", status=problem.status, code=problem.code, request_id=trace.request_id)

    def _close_transport(self) -> None:
        """Closing waits until the rest of the answer is sent, for as long as any answer may take."""
        is_refused_or_lost = self._closed
        super()._close_transport()
        if not is_refused_or_lost and self.transport is not None and self.transport.get_write_buffer_size():
            self.worker.unsent.add(self)
            self._set_deadline(http_rules.BODY_S, self.transport.abort)

    def _set_deadline(self, seconds: float, *call: Any) -> None:
        self._forget_deadline()
        self._deadline = self.worker.loop.call_later(seconds, *call)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def _has_hung_up(transport: asyncio.Transport) -> bool:
    """Whether its caller waits for no answer any more. What it sent to a process that was paused is not done then: it
    may have sent the same to another one, and after that something else, which this would undo.
    """
    poll = select.poll()
    poll.register(transport.get_extra_info("socket"), _HUNG_UP)
    return bool(poll.poll(0))


def _problem(error: Exception) -> problems.Problem:
    if isinstance(error, LimitRequestLine):
        return problems.Problem(414, detail="The request line is too long.")
    if isinstance(error, LimitRequestHeaders):
        return problems.Problem(431, detail="A header is too large, or there are too many.")
    if isinstance(error, UnsupportedTransferCoding):
        return problems.Problem(501, "unsupported_transfer_coding", "The only transfer coding taken is chunked.")
    return problems.Problem(400, detail="This is not a request as HTTP/1.1 has it.")
