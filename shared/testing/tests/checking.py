"""`tip broker check` as a process, and what it reports."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TIP = Path(sys.executable).with_name("tip")
PLUGIN = Path(__file__).with_name("hostile_plugin")
SECRET = {"TIP_BROKER_KEY_ID": "key-of-a-sandbox", "TIP_BROKER_SECRET_KEY": "secret-of-a-sandbox"}


def check(*words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(PLUGIN), **environment}
    command = [TIP, "broker", "check", *words]
    return subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, check=False)


def body(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def results(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return {claim["claim"]: claim["result"] for claim in body(done)["claims"]}
