"""npm's oidc-provider, an OpenID Connect provider nobody here wrote, fetched into a folder of its own."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tip_testing.ports import reserved_port
from tip_testing.waiting import eventually

PACKAGES = {"private": True, "type": "module", "dependencies": {"oidc-provider": "^9.0.0"}}
SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
CONSOLE, CONSOLE_SECRET = "tip-console", "for-tests-only-and-long-enough"
AUDIENCE = "tip-cli"


@contextmanager
def npm_provider(at: Path, console_callback: str = "") -> Iterator[str]:
    """Its issuer. With the address that a console is called back at it has a client for it, too."""
    _fetch(at)
    port = reserved_port()
    command = ["node", SCRIPT.name, str(port), *([console_callback] if console_callback else [])]
    with subprocess.Popen(command, cwd=at, stderr=subprocess.DEVNULL) as provider:
        issuer = f"http://127.0.0.1:{port}"
        try:
            eventually(lambda: _answers(f"{issuer}/.well-known/openid-configuration"))
            yield issuer
        finally:
            provider.terminate()


def platform_settings(issuer: str) -> Mapping[str, str]:
    """Of a platform whose users are this provider's."""
    deleting = {"OIDC_DELETE_URL": f"{issuer}/users/{{subject}}", "OIDC_DELETE_TOKEN": "of-nobody"}
    return {"IDENTITY_PROVIDER": "npm", "OIDC_ISSUER": issuer, "OIDC_AUDIENCE": AUDIENCE, **deleting}


def _fetch(at: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: oidc-provider cannot be tried")
    (at / "package.json").write_text(json.dumps(PACKAGES))
    shutil.copy(SCRIPT, at)
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
    fetched = subprocess.run(command, check=False, cwd=at, capture_output=True, text=True)
    if fetched.returncode != 0:
        pytest.skip(f"npm cannot fetch oidc-provider: {fetched.stderr[-300:]}")


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=2).status_code < 500
    except requests.RequestException:
        return False
