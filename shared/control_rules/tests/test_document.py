"""What is written about the rules, and what they stand on."""

import ast
import sys
from pathlib import Path

import control_rules
from control_rules.document import document


def test_the_decision_table_document_says_what_the_rule_decides() -> None:
    kept = Path(__file__).parents[1] / "docs" / "decision-table.md"

    assert kept.read_text() == document(), (
        "run: python -m control_rules.document > shared/control_rules/docs/decision-table.md"
    )


def test_the_rules_need_nothing_but_the_standard_library() -> None:
    imported = set()
    for source in Path(control_rules.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])

    assert imported - {"control_rules"} <= set(sys.stdlib_module_names)
