"""The documents agree with the code."""

import re
import subprocess
import tomllib
from importlib import import_module
from pathlib import Path

import yaml

from chassis import problems
from chassis.services import WEB_SERVICES

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [*ROOT.glob("shared/*/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]
PLAIN_TEXT_ONLY = {"queue_unreadable", "provider_unavailable", "deletion_unconfirmed"}
"""Of the two endpoints whose errors carry no code."""

WITHOUT_FLASK = {"bad_subscription", "bad_position", "out_of_range", "too_many_streams"}
"""Answered by the stream gateway."""
_RAISED = r'(?:Problem|__init__)\([0-9]{3}, "([a-z_]+)"'


def codes_in_the_contract() -> set[str]:
    lines = (ROOT / "docs" / "contract.md").read_text().splitlines()
    cells = [line.split("|")[3] for line in lines if re.match(r"\| [0-9]{3}(, [0-9]{3})* \|", line)]
    return {code for cell in cells for code in re.findall(r"`([a-z_]+)`", cell)}


def codes_in_the_code() -> set[str]:
    tables = [import_module(f"{name}.routes").STATUSES for name in WEB_SERVICES]
    domain = {problems.code_of(error) for table in tables for error in table}
    raised = {code for source in SOURCES for code in re.findall(_RAISED, source.read_text())}
    return domain | raised | set(problems.CODES.values())


def test_the_contract_names_every_code_there_is_and_no_other() -> None:
    assert codes_in_the_contract() - WITHOUT_FLASK == codes_in_the_code() - PLAIN_TEXT_ONLY


# Suites that are about nothing but keeping tenants apart, by the names they have wherever they are.
WALLS = ("tenants", "tenancy", "grants", "signed_heads", "fairness", "fair_share", "fair_queue", "quota", "limits")


def promised_about_security() -> str:
    return (ROOT / "SECURITY.md").read_text().split("## What is promised")[1].split("## What is not")[0]


def test_every_suite_that_keeps_tenants_apart_proves_a_promise_about_security() -> None:
    suites = {
        str(file.relative_to(ROOT))
        for wall in WALLS
        for folder in ("shared", "services")
        for file in (ROOT / folder).glob(f"**/tests/**/test_{wall}.py")
    }

    assert len(suites) > len(WALLS)
    assert sorted(name for name in suites if f"`{name}`" not in promised_about_security()) == []


def test_every_promise_about_security_has_its_proof_beside_it() -> None:
    rows = re.findall(r"^\| (.+) \| (.+) \|$", promised_about_security(), re.M)[1:]

    assert len(rows) > 15
    assert [promise for promise, proof in rows if not re.search(r"`[\w./-]+\.py`", proof)] == []


def test_views_that_are_heavy_have_a_front_that_looks_for_them() -> None:
    heavy = {source.relative_to(ROOT).parts[1] for source in SOURCES if "heavy=True" in source.read_text()}

    assert heavy == {"intents"}


def test_what_is_promised_about_security_names_tests_that_exist() -> None:
    named = re.findall(r"`([\w./-]+\.py)`", promised_about_security())

    assert len(named) > 15
    assert [name for name in named if "def test_" not in (ROOT / name).read_text() and "bench/" not in name] == []


def test_every_package_has_the_license_of_the_repository() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    packages = [tomllib.loads(path.read_text())["project"] for path in ROOT.glob("**/src/../pyproject.toml")]

    assert len(packages) > 10
    assert {package["license"] for package in packages} == {"Apache-2.0"}


def test_the_workflow_runs_the_two_commands_of_the_readme_on_linux_and_macos() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    job = workflow["jobs"]["test"]
    commands = [step["run"] for step in job["steps"] if "run" in step]

    assert [command.split("\n")[0] for command in commands] == ["make start", "make test"]
    assert {system.split("-")[0] for system in job["strategy"]["matrix"]["system"]} == {"ubuntu", "macos"}
    assert any(system.endswith("-arm") for system in job["strategy"]["matrix"]["system"])


def test_what_commands_make_is_marked_as_generated() -> None:
    client = ROOT / "clients" / "python" / "src" / "tip_client"
    made = [*ROOT.glob("requirements*.lock"), *ROOT.glob("proto/src/trading_proto/*_pb2*")]
    made += [*client.glob("_proto/*_pb2*"), *client.glob("_sync/*.py")]
    names = [str(path.relative_to(ROOT)) for path in made]
    command = ["git", "check-attr", "linguist-generated", "--", *names]
    attributes = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()

    assert len(names) >= 22
    assert [line for line in attributes if not line.endswith(": true")] == []
