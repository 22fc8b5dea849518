"""Server-Sent Events as a client reads them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests

from .gateway_process import Gateway


@contextmanager
def opened(gateway: Gateway, api_key: str, account_id: object, query: str = "", **headers: str) -> Iterator[Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"{gateway.events_url}/v1/accounts/{account_id}/events{query}"
    with requests.get(address, headers={"x-api-key": api_key, **named}, stream=True, timeout=60) as answer:
        yield answer


def events(answer: requests.Response) -> Iterator[dict[str, str]]:
    """Each event as its fields, read as a browser reads them."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines(chunk_size=1, decode_unicode=True):
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields
            fields = {}
