"""Processes that send the same few requests on many connections as fast as they are answered."""

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attack_http import written
from attack_tenants import JSON, Builder, Tenant, create, invented, keyed

FLOOD = Path(__file__).with_name("attack_flood.py")
BATCH = 100
LONG_LOG = 15
"""Batches in the log that is verified."""


@dataclass
class Attack:
    address: tuple[str, int]
    requests: list[bytes]
    connections: int
    _process: Any = None

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(FLOOD)], stdin=subprocess.PIPE)
        pickle.dump((self.address, self.requests, self.connections), self._process.stdin)
        self._process.stdin.close()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def batches(address: tuple[str, int], loud: Tenant) -> Attack:
    body = json.dumps({"commands": [create()["command"]] * BATCH}).encode()
    path = f"/v1/accounts/{loud.accounts['paper']}/intents/batch"
    return Attack(address, [written("POST", path, (*keyed(loud.api_keys["paper"]), JSON), body)], 20)


def verifications(address: tuple[str, int], builder: Builder, loud: Tenant) -> Attack:
    account, key = loud.accounts["spare_paper"], keyed(loud.api_keys["paper"])
    commands = {"commands": [create()["command"]] * BATCH}
    for _ in range(LONG_LOG):
        builder.answer("POST", f"/v1/accounts/{account}/intents/batch", key, commands)
    return Attack(address, [written("GET", f"/v1/accounts/{account}/intents/verify", key)], 20)


def invented_keys(address: tuple[str, int]) -> Attack:
    return Attack(address, [written("GET", "/v1/accounts", keyed(invented())) for _ in range(2_000)], 64)
