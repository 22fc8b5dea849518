"""Which process of `make up` holds which secret: read from /proc, and compared with a table."""

import json
import sys
from typing import Any

import pytest

# Found by value, under whatever name and inside whatever address it stands.
SCRIPT = """
import json
from pathlib import Path
from tip_local.home import Home
from tip_local.settings import Settings
home = Home(Settings.from_env().home)
held = {}
for process in home.state()["processes"]:
    environment = Path(f"/proc/{process['pid']}/environ").read_text()
    held[process["name"]] = sorted(name for name, value in home.secrets().items() if value in environment)
print(json.dumps(held))
"""

SIGNING, VAULT, CURSOR = "signing_key_encryption_key", "vault_key_encryption_key", "cursor_key"
# By the names in secrets.json; that of a role is its password of the database.
HOLDS = {
    "postgres": [],
    "valkey": [],
    "paper-broker": ["paper_broker_operator_token"],
    "web": ["identity_web", "accounts_web", "controls_web", "intents_web", CURSOR, SIGNING, VAULT],
    "web-2": ["identity_web", "accounts_web", "controls_web", "intents_web", CURSOR, SIGNING, VAULT],
    "stream-gateway": ["stream_gateway", CURSOR],
    "identity-relay": ["identity", CURSOR],
    "identity-scheduler": ["identity", CURSOR],
    "accounts-relay": ["accounts", CURSOR, VAULT],
    "accounts-consumer": ["accounts", CURSOR],
    "controls-relay": ["controls", CURSOR],
    "controls-consumer": ["controls", CURSOR],
    "intents-relay": ["intents", CURSOR],
    "intents-consumer": ["intents", CURSOR],
    "intents-scheduler": ["intents", CURSOR],
    "intents-signer": ["intents_signer", "log_signing_key"],
    "intents-executor": ["intents", CURSOR, VAULT],
    "intents-executor-2": ["intents", CURSOR, VAULT],
    "intents-reconciler": ["intents", CURSOR, VAULT],
}


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of a process is read from /proc")
def test_every_process_holds_its_own_secrets_and_no_other(stack: Any) -> None:
    held = json.loads(stack.operate("python", "-c", SCRIPT))

    assert held == {name: sorted(secrets) for name, secrets in HOLDS.items()}
