"""A backup, taken and restored with the commands of docs/operations.md, is the platform it was taken of."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from tip_testing.commands import create
from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually

pytestmark = pytest.mark.timeout(1_200)  # a second platform starts, beside the first

PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"
RESTORED = "tip-restored"


def commands(heading: str) -> list[list[str]]:
    """The commands of the page's section, block by block, without their comments."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```\n(.*?)```", section, re.S)
    found = [[re.sub(r"\s+#.*", "", line) for line in block.splitlines()] for block in blocks]
    return [lines for lines in found if any("docker-compose" in line for line in lines)]


def carry_out(containers: Any, lines: list[str], folder: Path, **environment: str) -> None:
    """As an operator would, in a folder of their own."""
    parts = containers.compose_command_property
    compose = shlex.join(str(containers.context / part) if part.endswith(".yml") else part for part in parts)
    for line in lines:
        command = line.replace("docker-compose", compose, 1)
        done = subprocess.run(
            command,
            shell=True,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.fixture(scope="module")
def restored(stack: Any, containers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The same organizations, keys and orders in another project."""
    folder = tmp_path_factory.mktemp("backup")
    trade(stack)
    ports = {name: str(reserved_port()) for name in ("INGRESS_PORT", "PAPER_BROKER_PORT", "GLEWLWYD_PORT")}
    project = {**ports, "COMPOSE_PROJECT_NAME": RESTORED}
    backup, restore = commands("Backup and restore")
    carry_out(containers, ["docker-compose down --volumes"], folder, **project)  # what an interrupted run has left
    try:
        carry_out(containers, backup, folder)
        carry_out(containers, restore, folder, **project)
        carry_out(containers, ["docker-compose run --rm -T migrate cat ca.crt > ca.crt"], folder, **project)
        address = f"localhost:{ports['INGRESS_PORT']}"
        local = {**stack.local, "base_url": f"https://{address}", "stream_target": address, "ca": "ca.crt"}
        restored_stack = type(stack)(local, folder / "ca.crt")
        eventually(lambda: answers(restored_stack), 120)
        yield restored_stack
    finally:
        carry_out(containers, ["docker-compose down --volumes --timeout 10"], folder, **project)


def answers(stack: Any) -> bool:
    """Compose starts the ingress last and does not wait until it listens."""
    try:
        return bool(stack.nobody()("GET", "/openapi.json").ok)
    except requests.ConnectionError:
        return False


def trade(stack: Any) -> None:
    """An order, filled."""
    path, caller = f"/v1/accounts/{stack.account('acme')}/intents", stack.key("acme")
    made = caller("POST", path, create(new_symbol(), "1")).json()["intent_id"]
    eventually(lambda: caller("GET", f"{path}/{made}").json()["state"]["status"] == "FILLED", 120)


def new_symbol() -> str:
    return f"Z{uuid4().hex[:8].upper()}"


def history(stack: Any, account: str) -> list[Any]:
    found, cursor = [], ""
    while True:
        page = stack.key("acme")("GET", f"/v1/accounts/{account}/intents?limit=500{cursor}").json()
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&next_cursor={page['next_cursor']}"


def test_a_restored_platform_knows_every_order_and_goes_on_counting(stack: Any, restored: Any) -> None:
    account = stack.account("acme")
    before = history(stack, account)
    assert before
    assert history(restored, account) == before

    trade(restored)
    assert [action["sequence"] > before[-1]["sequence"] for action in history(restored, account)[len(before) :]] == [
        True
    ]


def test_the_keys_and_tokens_of_callers_open_the_restored_platform(restored: Any) -> None:
    assert restored.key("acme")("GET", "/v1/auth/self").status_code == 200
    assert restored.service()("GET", "/v1/organizations").status_code == 200
    assert restored.user("acme")("GET", "/v1/users/me").status_code == 200
