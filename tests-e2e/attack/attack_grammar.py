"""Requests by chance, mostly well-formed and wrong in one place: from the document's schemas and old tricks."""

import json
import random
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

TEXTS = (
    "", " ", "\t", "a", "A" * 200, "x" * 1_500, "é", "ß", "\u202e\u2066", "\U0001f4a3", "\ufeff", "\u0000", "\ud800",
    "'", "\"", "\\", "' OR '1'='1", "1; DROP TABLE intents.action", "${jndi:ldap://127.0.0.1/a}", "{{7*7}}", "%s%n",
    "../../etc/passwd", "<script>alert(1)</script>", "\r\nSet-Cookie: a=b", "\x1b[31mred\x1b[0m", "null", "true", "NaN",
    "1e400", "-0", "0x10", "٣", "\uff11\uff12", "AAPL", "SIM.OPEN", "BTC/USD", "a" * 65, "09:30:00", "24:00:00",
    "2026-11-15T10:00:00Z", "9999-12-31T23:59:60+14:00", "0000-00-00", "00000000-0000-0000-0000-000000000000",
)  # fmt: skip
NUMBERS = (
    "0", "-0", "1", "-1", "1.5", "1e2", "1E+1000000000", "1e400", "-1e400", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "2147483648", "0.1",
    "0." + "0" * 400 + "1", "9" * 400, "NaN", "Infinity", "-Infinity",
    "01", "1.", ".5", "+1", "1_000", "0x1F",
)  # fmt: skip
DECIMALS = (
    "0",
    "0.0",
    "1",
    "1.000000001",
    "1.0000000001",
    "999999999999999",
    "9999999999999999",
    "-1",
    "1e3",
    "٣",
    " 1",
)
CONTENT_TYPES = (
    "application/json", "application/json; charset=utf-8", "application/json; charset=utf-16", "text/plain",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "application/problem+json", "", "json",
    "application/json, text/html",
)  # fmt: skip
ODD_HEADERS = (
    ("X-Request-Id", "a b"), ("X-Request-Id", "x" * 200), ("traceparent", "00-" + "0" * 32 + "-" + "0" * 16 + "-00"),
    ("traceparent", "garbage"), ("If-Match", "*"), ("If-Match", '"1"'), ("If-Match", 'W/"1"'), ("If-Match", "9" * 40),
    ("Idempotency-Key", "k" * 255), ("Idempotency-Key", "k" * 256), ("Idempotency-Key", ""), ("Idempotency-Key", "é"),
    ("X-Forwarded-For", "127.0.0.1, 10.0.0.1"), ("X-HTTP-Method-Override", "DELETE"), ("Accept", "text/html"),
    ("Accept-Encoding", "gzip, br"), ("Cookie", "a=b"), ("Range", "bytes=0-1"), ("Origin", "null"),
    ("Expect", "nothing"), ("Forwarded", "for=127.0.0.1;host=example"), ("X-Original-URL", "/metrics"),
    ("Last-Event-ID", "1@x"), ("x-organization-id", "not-an-id"), ("Content-Encoding", "gzip"),
    ("If-None-Match", "*"), ("Host", "other.test"),
)  # fmt: skip
ODD_VALUES = (None, True, 0, -1, 2**63, 1.5, [], {}, [[]], "", *TEXTS)
ODD_WORDS = (*TEXTS, *NUMBERS)


def _quoted(value: Any) -> str:
    return quote(str(value).encode("utf-8", "surrogatepass"), safe="")


SEGMENTS = (
    "..%2f..%2f", "%00", "%", "%zz", "%c0%ae", ";", "*", "%25", "@", "%0d%0aX:1", "%F0%9F%92%A3", "~", "a" * 3_000,
    *(_quoted(text) for text in TEXTS if text),
)  # fmt: skip
STRINGS = ("AAPL", "SIM.OPEN", "word", "é", "UTC")


class Grammar:
    """One source of chance; the same seed writes the same requests."""

    def __init__(self, dice: random.Random, schemas: Mapping[str, Any]) -> None:
        self.dice, self._schemas = dice, schemas

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Something that the schema allows, as far as it says so."""
        if "$ref" in schema:
            return self.value(self._schemas[schema["$ref"].rpartition("/")[2]], depth)
        for word in ("oneOf", "anyOf", "allOf"):
            if word in schema:
                return self.value(self.dice.choice(schema[word]), depth)
        if "enum" in schema:
            return self.dice.choice(schema["enum"])
        kind = schema.get("type", "object")
        kind = self.dice.choice(kind) if isinstance(kind, list) else kind
        return getattr(self, f"_{kind}", self._object)(schema, depth)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        properties = schema.get("properties", {})
        if depth > 6:
            return {}
        least = self.dice.choice(sorted(properties)) if properties and not required else None
        return {
            name: self.value(inner, depth + 1)
            for name, inner in properties.items()
            if name in required or name == least or self.dice.random() < 0.3
        }

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.dice.randint(0, 3))]

    def _integer(self, schema: Mapping[str, Any], _depth: int) -> int:
        low = int(schema.get("minimum", 0))
        return self.dice.randint(low, min(int(schema.get("maximum", low + 1000)), low + 100_000))

    def _number(self, schema: Mapping[str, Any], depth: int) -> float:
        return float(self._integer(schema, depth))

    def _boolean(self, _schema: Mapping[str, Any], _depth: int) -> bool:
        return self.dice.random() < 0.5

    def _null(self, _schema: Mapping[str, Any], _depth: int) -> None:
        return None

    def _string(self, schema: Mapping[str, Any], _depth: int) -> str:
        kind, dice = schema.get("format"), self.dice
        if kind == "uuid":
            made = str(UUID(int=dice.getrandbits(128), version=4))
        elif kind == "decimal":
            made = dice.choice(DECIMALS)
        elif kind == "time":
            made = f"{dice.randint(0, 23):02}:{dice.randint(0, 59):02}:00"
        elif kind == "date-time":
            made = f"20{dice.randint(27, 40)}-01-01T00:00:00Z"
        else:
            made = dice.choice(STRINGS)
        return made[: schema.get("maxLength", len(made))]

    def broken(self, value: Any) -> Any:
        """The same with one thing wrong with it, somewhere."""
        if isinstance(value, dict) and value and self.dice.random() < 0.7:
            name = self.dice.choice(sorted(value))
            turn = self.dice.random()
            if turn < 0.15:
                return {key: inner for key, inner in value.items() if key != name}
            if turn < 0.3:
                return {**value, self.dice.choice(TEXTS): 1}
            return {**value, name: self.broken(value[name])}
        if isinstance(value, list) and value and self.dice.random() < 0.7:
            place = self.dice.randrange(len(value))
            return [*value[:place], self.broken(value[place]), *value[place + 1 :]]
        return self.dice.choice(ODD_VALUES)

    def body(self, schema: Mapping[str, Any]) -> bytes:
        value = self.value(schema)
        turn = self.dice.random()
        if turn < 0.45:
            return _encoded(value)
        if turn < 0.8:
            return _encoded(self.broken(value))
        return self._mangled(_encoded(value))

    def _mangled(self, text: bytes) -> bytes:
        """What is no JSON any more, or not the JSON it seems."""
        place = self.dice.randrange(len(text) + 1)
        number = self.dice.choice(NUMBERS).encode()
        makers = (
            lambda: text[:place],
            lambda: text[:place] + bytes([self.dice.randrange(256)]) + text[place + 1 :],
            lambda: b"\xef\xbb\xbf" + text,
            lambda: text.decode().encode("utf-16"),
            lambda: text + text,
            lambda: text.replace(b"{", b'{"a":1,"a":2,', 1),
            lambda: b'{"command":' + number + b"}",
            lambda: number,
            lambda: b"[" * self.dice.choice((31, 33, 1_000, 30_000)),
            lambda: b'{"a":' * 40 + b"1" + b"}" * 40,
            lambda: b'"' + b"a" * self.dice.choice((65_000, 66_000)) + b'"',
            lambda: b"\x00" + text,
            lambda: b'{"a":"\xff\xfe"}',
            lambda: b'{"a":"\\ud800"}',
            lambda: b"// comment\n" + text,
            lambda: b"",
        )
        return self.dice.choice(makers)()

    def query(self, parameters: list[Mapping[str, Any]]) -> str:
        """Of known and unknown parameters, good and bad, none most of the time."""
        if self.dice.random() < 0.6:
            return ""
        known = [parameter for parameter in parameters if parameter["in"] == "query"]
        pairs = []
        for _ in range(self.dice.randint(1, 3)):
            if known and self.dice.random() < 0.8:
                chosen = self.dice.choice(known)
                good = self.dice.random() < 0.5
                value = self.value(chosen["schema"]) if good else self.dice.choice(ODD_WORDS)
                pairs.append((chosen["name"], value))
            else:
                pairs.append((self.dice.choice(TEXTS), self.dice.choice(TEXTS)))
        return "?" + "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in pairs)

    def segment(self) -> str:
        """One path segment that is not what belongs there."""
        return self.dice.choice(SEGMENTS)

    def headers(self) -> list[tuple[str, str]]:
        return [self.dice.choice(ODD_HEADERS)] if self.dice.random() < 0.25 else []

    def content_type(self) -> str:
        return "application/json" if self.dice.random() < 0.92 else self.dice.choice(CONTENT_TYPES)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode()
