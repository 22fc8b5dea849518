"""Logs: one JSON object a line, traceable, and never a secret in them."""

import json
import logging
from dataclasses import dataclass, field

import pytest

from chassis import keys, logs, tracing


@pytest.fixture(autouse=True)
def _restore_logging() -> object:
    root = logging.getLogger()
    kept, level = root.handlers, root.level
    yield
    root.handlers, root.level = kept, level


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_a_line_has_a_name_fields_and_the_request_it_belongs_to(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("identity", log_format="json")
    token = tracing.current.set(tracing.Trace.begin("request-1", f"00-{'a' * 32}-{'b' * 16}-01"))
    logs.get("here").info("outbox_row_retried", outbox_id=7)
    tracing.current.reset(token)

    [line] = lines(capsys)
    assert (line["event"], line["outbox_id"], line["process"], line["level"]) == (
        "outbox_row_retried",
        7,
        "identity",
        "info",
    )
    assert (line["request_id"], line["trace_id"]) == ("request-1", "a" * 32)


def test_no_secret_reaches_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("identity", log_format="json")
    key, token = keys.generate("live"), "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
    code = "tip_invitation_R2-d2_c3PO"
    log = logs.get("here")
    log.info(
        "a",
        path=f"/v1/invitations/{code}",
        note=f"the key is {key}",
        authorization="Bearer x",
        client_secret="hush",
        api_key="k",
    )
    log.info("b", error=f"bad {token}", url="redis://user:word@127.0.0.1:6379/0")
    logging.getLogger("library").warning("connecting to postgresql://tip:word@127.0.0.1/tip with %s", key)
    try:
        raise ValueError(f"cannot use {key}")
    except ValueError:
        log.exception("c")

    written = capsys.readouterr().err
    assert len(written.splitlines()) == 4
    assert not [secret for secret in (key, token, code, "hush", "Bearer x", "word@") if secret in written]


def test_line_breaks_in_a_value_stay_inside_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("identity", log_format="json")
    logs.get("here").info("request", path='/x\r\n{"event": "forged"}\x1b[31m')

    assert [line["event"] for line in lines(capsys)] == ["request"]


HOSTILE = "/x\x1b[31m\r\n2026-01-01 [info] forged\x07\x7f\x9b\u202e\u2028"


def test_no_byte_that_a_terminal_obeys_reaches_a_line_of_text(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("identity", log_format="text")
    log = logs.get("here")
    log.info("request", path=HOSTILE, parts=[HOSTILE])
    logging.getLogger("library").warning("cannot read %s", HOSTILE)

    written = capsys.readouterr().err
    assert written.count("\n") == 2
    assert [character for character in written if not character.isprintable() and character != "\n"] == []
    assert "\\x1b[31m" in written


@pytest.mark.parametrize("library", [False, True], ids=["ours", "a library's"])
def test_the_message_of_an_exception_cannot_forge_a_line(capsys: pytest.CaptureFixture[str], library: bool) -> None:
    logs.configure("identity", log_format="text")
    log = logging.getLogger("library") if library else logs.get("here")
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("failed")

    first, *others = capsys.readouterr().err.rstrip("\n").split("\n")
    assert "failed" in first
    assert [line for line in others if not line.startswith("    ") or not line.isprintable()] == []
    assert any("ValueError: /x" in line for line in others)


@pytest.mark.parametrize("value", [2**70, "\ud800", "\u2028", "\x9b31m", float("nan"), {1: 2}, object(), b"x"])
def test_any_value_becomes_one_line_of_ascii(capsys: pytest.CaptureFixture[str], value: object) -> None:
    logs.configure("identity", log_format="json")
    logs.get("here").info("odd", value=value)

    written = capsys.readouterr().err
    assert written.isascii()
    assert len(written.splitlines()) == 1
    assert json.loads(written)["event"] == "odd"


def test_what_an_object_does_not_show_is_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass
    class Connection:
        password: str = field(repr=False)

    logs.configure("identity", log_format="json")
    logs.get("here").info("connected", to=Connection("hush"))

    assert "hush" not in capsys.readouterr().err


def test_a_logger_follows_the_latest_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    log = logs.get("here")
    for process, level in (("gunicorn", "warning"), ("identity", "info")):
        logs.configure(process, log_format="json", level=level)
        log.info("started")

    assert [line["process"] for line in lines(capsys)] == ["identity"]
