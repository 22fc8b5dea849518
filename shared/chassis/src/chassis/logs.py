"""Structured logs: JSON for machines, one readable line on a terminal, never a secret in either.

A line has a constant name and fields: `log.warning("outbox_publish_failed", outbox_id=7)`.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TextIO, cast

import structlog

from chassis import strict_json, tracing

_SECRET_NAMES = re.compile(r"(secret|password|token|authorization|api_?key|private|cookie|credential_value)", re.I)
_HARMLESS_NAMES = {"claim_token_lost", "token_issuer"}
_SECRET_VALUES = re.compile(
    r"tip_(?:paper|live)_[0-9A-Za-z]+"  # API keys
    r"|tip_invitation_[\w-]+"  # codes of invitations
    r"|eyJ[\w-]+\.[\w-]+\.?[\w-]*"  # JSON web tokens
    r"|(?<=://)[^/\s:@]*:[^@\s]+(?=@)"  # user:password in an address
)
HIDDEN = "[hidden]"

_job: ContextVar[str] = ContextVar("job")


def hide(text: str) -> str:
    """The text without anything that looks like a key, a token or a password in an address."""
    if "tip_" in text or "eyJ" in text or "://" in text:  # else the expression finds nothing
        return _SECRET_VALUES.sub(HIDDEN, text)
    return text


@lru_cache(maxsize=1024)
def _is_secret(name: str) -> bool:
    return bool(_SECRET_NAMES.search(name)) and name not in _HARMLESS_NAMES


def _hide_secrets(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if _is_secret(name):
            event[name] = HIDDEN
        elif isinstance(value, str):
            event[name] = hide(value)
    return event


def _add_trace(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    trace = tracing.current.get()
    if trace:
        event.setdefault("request_id", trace.request_id)
        event.setdefault("trace_id", tracing.trace_id(trace.traceparent))
    return event


def _naming(process: str) -> Any:
    def add_process(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.setdefault("process", _job.get(process))
        return event

    return add_process


def _escape(text: str) -> str:
    """The text without anything that a terminal obeys, or that ends a line."""
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    return character if character.isprintable() else ascii(character)[1:-1]


def _escape_fields(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if name == "exception":  # its lines stay lines, and are indented: none of them looks like one of ours
            event[name] = "\n".join(f"    {_escape(line)}" for line in str(value).split("\n"))
        elif isinstance(value, str):
            event[name] = _escape(value)
    return event


def _as_json(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> str:
    return strict_json.dumps_ascii(event, repr).decode()


class _StandardError:
    """Whatever standard error is when a line is written: it may have been replaced since logging was configured.

    A line that cannot be written, say to a full disk, is lost: what it is about goes on.
    """

    def write(self, line: str) -> int:
        with suppress(OSError):
            sys.stderr.write(line)
        return len(line)

    def flush(self) -> None:
        with suppress(OSError):
            sys.stderr.flush()


def configure(process: str, *, log_format: str = "auto", level: str = "info") -> None:
    """Send this process's logs, the libraries' included, to standard error."""
    as_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    shared: list[Any] = [
        _naming(process),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_trace,
        structlog.processors.format_exc_info,
        _hide_secrets,
    ]
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    rendering: list[Any] = [_escape_fields, console] if as_text else [_as_json]
    # Our own lines go straight to the stream: the way through `logging` would double the price of a request's line.
    structlog.configure(
        processors=[*shared, *rendering],
        logger_factory=structlog.WriteLoggerFactory(file=cast("TextIO", _StandardError())),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        cache_logger_on_first_use=False,
    )
    _Logger.configuration = object()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendering],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())


def name_thread(job: str) -> None:
    """Name the lines of this thread after a job that shares its process with others."""
    _job.set(job)


class _Logger:
    """structlog's logger, kept until logs are configured anew: to make one for each line is a third of its price."""

    configuration = object()
    """Another one each time logs are configured."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept: Any = None
        self._made_for: object = None

    def __getattr__(self, method: str) -> Any:
        if self._made_for is not _Logger.configuration:
            self._kept, self._made_for = structlog.get_logger(self._name).bind(), _Logger.configuration
        return getattr(self._kept, method)


def get(name: str) -> Any:
    return _Logger(name)
