"""Which process of `make up` holds which secret: what each is given, compared with a table."""

import json
import sys
from typing import Any

import pytest

# Found by value, under whatever name and inside whatever address it stands. A copy of the nursery has the environment
# that it is given, and nothing else (deploy/local/tests/test_copies.py); that of all others is in /proc.
SCRIPT = """
import json
from pathlib import Path
from tip_local.process_table import PROCESSES
from tip_local.settings import Settings
from tip_local.stack import running_stack
from tip_local.up import supervised
stack = running_stack(Settings.from_env())
home = stack.home
given = {spec.name: "\\n".join(supervised(stack, spec).env.values()) for spec in PROCESSES if spec.copied}
running = {process["name"]: process["pid"] for process in home.state()["processes"]}
supervisor = home.state()["pid"]
for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
    if "tip_local.nursery" in Path(f"/proc/{pid}/cmdline").read_text():
        running["nursery"] = pid
held = {}
for name, pid in running.items():
    environment = given.get(name, "") + Path(f"/proc/{pid}/environ").read_text()
    held[name] = sorted(secret for secret, value in home.secrets().items() if value in environment)
print(json.dumps(held))
"""

SIGNING, VAULT, CURSOR = "signing_key_encryption_key", "vault_key_encryption_key", "cursor_key"
# By the names in secrets.json; that of a role is its password of the database.
HOLDS = {
    "nursery": [],
    "postgres": [],
    "valkey": [],
    "paper-broker": ["paper_broker_operator_token"],
    "web": ["identity_web", "accounts_web", "controls_web", "intents_web", CURSOR, SIGNING, VAULT],
    "web-2": ["identity_web", "accounts_web", "controls_web", "intents_web", CURSOR, SIGNING, VAULT],
    "stream-gateway": ["stream_gateway", CURSOR],
    "identity-workers": ["identity", CURSOR],
    "accounts-relay": ["accounts", CURSOR, VAULT],
    "accounts-consumer": ["accounts", CURSOR],
    "controls-workers": ["controls", CURSOR],
    "intents-workers": ["intents", CURSOR],
    "intents-signer": ["intents_signer", "log_signing_key"],
    "intents-executor": ["intents", CURSOR, VAULT],
    "intents-executor-2": ["intents", CURSOR, VAULT],
    "intents-reconciler": ["intents", CURSOR, VAULT],
}


@pytest.mark.skipif(sys.platform != "linux", reason="the environment of a process is read from /proc")
def test_every_process_holds_its_own_secrets_and_no_other(stack: Any) -> None:
    held = json.loads(stack.operate("python", "-c", SCRIPT))

    assert held == {name: sorted(secrets) for name, secrets in HOLDS.items()}
