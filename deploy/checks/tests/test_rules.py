"""Every rule of ours has a snippet that it finds and one that it leaves alone; `make security` runs them."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

CHECKS = Path(__file__).resolve().parents[1]
RULES = sorted((CHECKS / "semgrep").glob("*.yml"))
REPOSITORY = CHECKS.parents[1]


def test_there_are_rules() -> None:
    assert RULES


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.name)
def test_every_rule_has_a_snippet_that_it_finds_and_one_that_it_leaves_alone(file: Path) -> None:
    snippets = file.with_suffix(".py").read_text()
    rules = {rule["id"] for rule in yaml.safe_load(file.read_text())["rules"]}

    assert rules <= set(re.findall(r"# ruleid: (\S+)", snippets))
    assert rules <= {name for line in re.findall(r"# ok: (.+)", snippets) for name in line.split(", ")}


def test_a_finding_is_excused_only_with_its_reason_beside_it() -> None:
    command = ["git", "grep", "-hE", "# *(nosec|nosemgrep)", "--", "*.py", ":!deploy/checks"]
    excused = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False).stdout.splitlines()
    with_reason = re.compile(r" - \w.*# (nosec B\d+|nosemgrep: [\w-]+)$")

    assert [line for line in excused if not with_reason.search(line)] == []
    assert len(excused) < 20, "a rule with many exceptions is the wrong rule"
