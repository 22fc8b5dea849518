"""Clients in other languages, and those that generators make of the document, trade on a whole platform."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from pathlib import Path

import pytest
from cutting_proxy import CuttingProxy
from sdk_platform import Platform

import tip_client as tip

pytestmark = pytest.mark.timeout(600)  # packages are fetched, and a platform is started
TYPESCRIPT = Path(__file__).parents[2] / "typescript"
LEFT_OUT = shutil.ignore_patterns("node_modules", "dist", "schema.ts")
CUTS = 40
PROGRAM = """
from uuid import uuid4
from sys import argv
from generated import AuthenticatedClient
from generated.api.intents import intents_submit_intent
from generated.models import (
    CreateCommand, CreateCommandType, CreatePayload, LimitOrder, LimitSpec, OrderSide, SubmitIntent,
)

url, key, account, symbol = argv[1:]
client = AuthenticatedClient(base_url=url, token=key, prefix="", auth_header_name="x-api-key")
spec = LimitSpec(limit=LimitOrder(quantity="1", limit_price="5"))
payload = CreatePayload(symbol=symbol, order_side=OrderSide.BUY, spec=spec)
body = SubmitIntent(command=CreateCommand(type_=CreateCommandType.CREATE, payload=payload))
answer = intents_submit_intent.sync_detailed(account, client=client, body=body, idempotency_key=uuid4().hex)
print(answer.status_code.value, answer.parsed.state.status, answer.parsed.spec.limit.limit_price)
"""


def run(*command: str, cwd: Path, **environment: str) -> str:
    variables = {**os.environ, **environment}
    done = subprocess.run(command, check=False, cwd=cwd, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The TypeScript client, compiled against the document of this platform."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the TypeScript client is not built")
    at = tmp_path_factory.mktemp("typescript") / "client"
    shutil.copytree(TYPESCRIPT, at, ignore=LEFT_OUT)
    fetched = subprocess.run(["npm", "ci"], check=False, cwd=at, capture_output=True, text=True)
    if fetched.returncode:
        pytest.skip(f"npm cannot fetch the packages of the TypeScript client: {fetched.stderr[-300:]}")
    run("npm", "run", "generate", cwd=at, OPENAPI=f"{platform.local['base_url']}/openapi.json")
    run("npm", "run", "build", cwd=at)
    return at


def environment(settings: tip.Settings, **more: str) -> Mapping[str, str]:
    return {"TIP_URL": settings.url, "TIP_KEY": settings.key or "", "TIP_ACCOUNT": settings.account or "", **more}


def test_the_rules_of_the_typescript_client_hold(built: Path) -> None:
    printed = run("npm", "test", cwd=built)

    assert "# fail 0" in printed
    assert printed.count("\nok ") >= 15


def test_a_program_in_typescript_places_an_order_and_follows_it(platform: Platform, built: Path, symbol: str) -> None:
    printed = run("node", "dist/examples/first-order.js", symbol, cwd=built, **environment(platform.settings()))

    assert printed.startswith("submitted ")
    assert "FILLED at " in printed.splitlines()[-1]


@pytest.mark.parametrize("way", ["headers", "--ticket"])
def test_no_disconnect_shows_in_what_a_typescript_stream_yields(
    platform: Platform, built: Path, own_account: str, symbol: str, way: str
) -> None:
    settings = platform.settings(account=own_account)
    with tip.Client(settings=settings) as client, CuttingProxy(settings.url) as proxy:
        command = ["node", "dist/examples/follow.js", "0", way]
        through_proxy = environment(settings, TIP_URL=f"http://{proxy.address}")
        lines = followed(command, built, through_proxy)
        client.buy(symbol, 1)
        seen = [next(lines)]
        while proxy.cuts < CUTS:
            proxy.cut()
            client.buy(symbol, 1)
            seen.append(next(lines))
        last = client.verify().last_sequence
        while seen[-1] < last:
            seen.append(next(lines))
        lines.close()

    assert seen == list(range(1, seen[-1] + 1)), f"{proxy.cuts} disconnects"


def followed(command: list[str], cwd: Path, variables: Mapping[str, str]) -> Generator[int, None, None]:
    """The sequences that a program prints, as it prints them."""
    process = subprocess.Popen(command, cwd=cwd, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        for line in process.stdout or ():
            yield int(line.partition("@")[0])
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()


def test_a_typescript_stream_whose_key_is_revoked_ends_with_the_reason(platform: Platform, built: Path) -> None:
    with platform.admin() as admin:
        key = admin.keys.create("to be revoked", environment="paper", permissions=["intent:read"])
        revoked = {**environment(platform.settings()), "TIP_KEY": key.key}
        process = subprocess.Popen(
            ["node", "dist/examples/follow.js"], cwd=built, env={**os.environ, **revoked},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with tip.Client(settings=platform.settings()) as client:
            client.buy("AAPL", 1)
        assert process.stdout and process.stdout.readline(), "the stream is open"
        admin.keys.delete(key.id)
    _, error = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "unauthenticated" in error
    assert key.key not in error


def test_a_generated_python_client_places_an_order(platform: Platform, symbol: str, tmp_path: Path) -> None:
    settings = platform.settings()
    generator = (sys.executable, "-m", "openapi_python_client", "generate", "--url", f"{settings.url}/openapi.json")
    options = "content_type_overrides: {application/jsonl: text/plain}\npost_hooks: []\nhttp_timeout: 60\n"
    (tmp_path / "config.yml").write_text(options)
    strictly = ("--fail-on-warning", "--meta", "none", "--config", "config.yml")
    run(*generator, "--output-path", "generated", *strictly, cwd=tmp_path)

    printed = run(
        sys.executable, "-c", PROGRAM, settings.url, settings.key or "", settings.account or "", symbol, cwd=tmp_path
    )

    assert printed.split() == ["201", "PENDING", "5"]
