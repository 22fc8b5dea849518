"""A client that has only the schema: buf curl."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from tip_testing.identity_fixtures import Organization

from .gateway_process import Gateway
from .log_writer import Writer

BUF = Path(sys.executable).with_name("buf")
PROTO = Path(__file__).parents[3] / "proto"


@contextmanager
def buf_curl(gateway: Gateway, api_key: str, request: dict[str, Any]) -> Iterator[Iterator[dict[str, Any]]]:
    command = [BUF, "curl", "--schema", PROTO, "--protocol", "grpc", "--http2-prior-knowledge", "--emit-defaults"]
    address = f"http://{gateway.target}/trading.TradingService/SubscribeEvents"
    process = subprocess.Popen(
        [*command, "-H", f"x-api-key: {api_key}", "-d", json.dumps(request), address],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        yield _documents(process.stdout)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _documents(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    text = ""
    for line in lines:
        text += line
        try:
            yield json.loads(text)
            text = ""
        except ValueError:
            continue


def test_buf_curl_subscribes_and_resumes(
    gateway: Gateway, acme: Organization, account_id: UUID, writer: Writer
) -> None:
    writer.append(account_id, 3)
    request = {"tradingAccountId": str(account_id), "subscriptions": ["EVENT_TYPE_BROKER_ORDER"]}

    with buf_curl(gateway, acme.api_keys["paper"], request | {"resumeAfterSequence": "1"}) as events:
        second, third, word = (next(events) for _ in range(3))
        writer.append(account_id)
        fourth = next(event for event in events if event["type"] != "EVENT_TYPE_UNSPECIFIED")
    writer.append(account_id, 2)
    with buf_curl(gateway, acme.api_keys["paper"], request | {"resumeAfterSequence": fourth["sequence"]}) as events:
        resumed = [next(events)["sequence"] for _ in range(2)]

    assert [second["sequence"], third["sequence"], fourth["sequence"]] == ["2", "3", "4"]
    assert "replayComplete" in word and second["brokerOrder"]["limitPrice"] == "187.50"
    assert resumed == ["5", "6"]
