"""aiohttp's HTTP connection with our limits: headers have a time, and what the server itself refuses is a problem."""

import asyncio
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong
from aiohttp.web_protocol import RequestHandler

from chassis import http_rules, logs, problems, tracing

log = logs.get(__name__)


class Runner(web.AppRunner):
    """Serves an app over such connections."""

    def __init__(self, app: web.Application, **options: Any) -> None:
        super().__init__(app, access_log=None, keepalive_timeout=http_rules.IDLE_S, **options)

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(
            made.request_handler,
            request_factory=made.request_factory,
            handler_cancellation=made.handler_cancellation,
            loop=made._loop,
            **made._kwargs,
        )


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(RequestHandler):
    __slots__ = ("_deadline",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._waiter is None or self._waiter.done():  # a request is there, or one is being answered
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self._loop.call_later(http_rules.HEADERS_S, self._cut_off)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_off(self) -> None:
        if self.transport is not None:
            self.transport.write(http_rules.closing_answer(*_refused(http_rules.headers_too_late())))
        self.force_close()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        if isinstance(resp, web.HTTPExpectationFailed):
            resp = self.handle_error(request, resp.status)
        return await super().finish_response(request, resp, start_time)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it quotes what was sent
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has begun: no other can be given")
        if status >= 500:
            log.error("unexpected_error", exc_info=exc)
        if isinstance(exc, LineTooLong):
            problem = problems.Problem(431, detail="The request line or a header is too long.")
        elif status == 400:
            problem = problems.Problem(400, detail="This is not a request as HTTP/1.1 has it.")
        else:
            problem = problems.Problem(status, detail=HTTPStatus(status).description)
        answer, trace = _refused(problem)
        headers = [*answer.headers, *http_rules.common_headers(trace)]
        response = web.Response(status=answer.status, body=answer.body, headers=headers)
        response.force_close()
        return response


def _refused(problem: problems.Problem) -> tuple[problems.Answer, tracing.Trace]:
    """An answer that no handler gives, and the trace under which it is logged."""
    trace = tracing.Trace.begin()
    log.info("request_refused", status=problem.status, code=problem.code, request_id=trace.request_id)
    return problems.render(problem, problems.RouteMatch("stream-gateway", "unmatched", "/"), trace.request_id), trace


def check(request: web.BaseRequest) -> None:
    """Raise the problem of a request that breaks the rules of every server."""
    headers = [(name.lower(), value) for name, value in request.raw_headers]
    version = (request.version.major, request.version.minor)
    http_rules.check(version, headers, request.content_length)
