"""JSON at the door: what is ambiguous is refused, and no body whatsoever yields 500."""

import json
import math
from typing import Any

import pytest
from flask.testing import FlaskClient
from hypothesis import given, settings
from hypothesis import strategies as st

from chassis import strict_json
from identity.app import create_app
from tip_testing.platform_plugin import Platform

PATH = "/api/v1/auth/api-key/validate"
HOSTILE = {
    "nothing": b"",
    "not json": b"{",
    "trailing data": b'{"api_key": "x"} {}',
    "duplicate keys": b'{"api_key": "x", "api_key": "y"}',
    "duplicate keys deep inside": b'{"a": [{"b": {"c": 1, "c": 2}}]}',
    "NaN": b'{"api_key": NaN}',
    "Infinity": b'{"api_key": -Infinity}',
    "a number too large": b'{"api_key": 1e400}',
    "a number too long": b'{"api_key": ' + b"9" * 5000 + b"}",
    "a whole number beyond a double": b'{"api_key": ' + b"9" * 400 + b"}",
    "a negative one beyond a double": b'{"api_key": [-' + b"9" * 400 + b"]}",
    "too deep": b"[" * 33 + b"]" * 33,
    "far too deep": b"[" * 30_000,
    "deep objects": b'{"a":' * 8_000 + b"1" + b"}" * 8_000,
    "byte order mark": b'\xef\xbb\xbf{"api_key": "x"}',
    "UTF-16": '{"api_key": "x"}'.encode("utf-16"),
    "UTF-32": '{"api_key": "x"}'.encode("utf-32"),
    "invalid UTF-8": b'{"api_key": "\xff"}',
    "overlong UTF-8": b'{"api_key": "\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"api_key": "\xed\xa0\x80"}',
    "an escaped NUL": rb'{"api_key": "\u0000"}',
    "a raw NUL": b'{"api_key": "\x00"}',
    "half a surrogate pair": rb'{"api_key": "\ud800"}',
    "half a pair as a key": rb'{"\udfff": 1}',
    "single quotes": b"{'api_key': 'x'}",
    "a comment": b'{"api_key": "x"} // yes',
}


@pytest.fixture(scope="module")
def client(platform: Platform) -> FlaskClient:
    return create_app(platform.web_environment("identity")).test_client()


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_not_plain_json_is_refused_as_malformed(client: FlaskClient, body: bytes) -> None:
    answer = client.post(PATH, data=body, content_type="application/json")

    assert (answer.status_code, answer.json["code"]) == (400, "malformed_json")
    assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"', b"true", b'[{"api_key": "x"}]'])
def test_json_of_another_shape_is_refused_as_invalid(client: FlaskClient, body: bytes) -> None:
    assert client.post(PATH, data=body, content_type="application/json").status_code == 422


@pytest.mark.parametrize("value", [None, 1, 1.5, True, [], {}, "", "x" * 256, "a\nb", "a\x7f"])
def test_a_field_of_another_type_or_size_is_named_by_a_pointer(client: FlaskClient, value: Any) -> None:
    answer = client.post(PATH, json={"api_key": value})

    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json["errors"]] == ["/api_key"]


def test_unknown_fields_are_refused(client: FlaskClient) -> None:
    answer = client.post(PATH, json={"api_key": "x", "organization_id": "y"})

    assert answer.status_code == 422
    assert [(error["pointer"], error["code"]) for error in answer.json["errors"]] == [
        ("/organization_id", "unknown_field")
    ]


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/x+json",
     "application/problem+json", "application/json; charset=utf-16", "application/jsonp", "text/json"],
)  # fmt: skip
def test_other_content_types_are_refused(client: FlaskClient, content_type: str) -> None:
    answer = client.post(PATH, data=b'{"api_key": "x"}', content_type=content_type)

    assert (answer.status_code, answer.json["code"]) == (415, "not_json")


def test_a_body_over_64_kib_is_refused_before_it_is_parsed(client: FlaskClient) -> None:
    answer = client.post(PATH, data=b'{"api_key": "' + b"x" * 65_536 + b'"}', content_type="application/json")

    assert (answer.status_code, answer.json["code"]) == (413, "body_too_large")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_yield_500(client: FlaskClient, body: bytes) -> None:
    assert client.post(PATH, data=body, content_type="application/json").status_code in (400, 401, 422)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "".join(key + _texts(member) for key, member in value.items())
    return "".join(map(_texts, value)) if isinstance(value, list) else ""


@settings(max_examples=300, deadline=None)
@given(JSON, st.booleans())
def test_everything_else_is_read_as_the_standard_library_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    unreadable = "\x00" in _texts(value) or any("\ud800" <= c <= "\udfff" for c in _texts(value))
    try:
        body = text.encode()
    except UnicodeEncodeError:
        body = text.encode("utf-8", "surrogatepass")
    if unreadable:
        with pytest.raises(strict_json.BadJson):
            strict_json.loads(body)
    else:
        assert strict_json.loads(body) == json.loads(text)


@given(st.integers(min_value=1, max_value=64))
def test_the_depth_limit_is_exact_and_brackets_in_strings_do_not_count(depth: int) -> None:
    body = b'{"a":' * (depth - 1) + b'["' + b"[{" * 40 + b'\\""]' + b"}" * (depth - 1)
    if depth > strict_json.MAX_DEPTH:
        with pytest.raises(strict_json.BadJson):
            strict_json.loads(body)
    else:
        assert strict_json.loads(body)


def test_finite_numbers_keep_their_value() -> None:
    assert strict_json.loads(b"[1e308, -0.0, 12345678901234567890]") == [1e308, -0.0, 12345678901234567890]
    assert math.copysign(1, strict_json.loads(b"-0.0")) == -1
