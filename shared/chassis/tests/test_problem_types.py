"""The table of problems against the contract."""

import re
from collections.abc import Iterator
from pathlib import Path

from chassis.problem_document import document
from chassis.problem_types import TYPES
from chassis.problems import CODES

DOCS = Path(__file__).parents[3] / "docs"
CONTRACT, CATALOGUE = DOCS / "contract.md", DOCS / "manual" / "errors.md"


def promised() -> Iterator[tuple[set[int], set[str]]]:
    """Statuses and codes of each row of the contract's table."""
    for line in CONTRACT.read_text().splitlines():
        if row := re.fullmatch(r"\| ([45][0-9, ]+) \|.*\|(.*)\|", line):
            yield {int(status) for status in row[1].split(",")}, set(re.findall(r"`(\w+)`", row[2]))


def test_every_code_of_the_contract_is_in_the_table_and_no_other() -> None:
    assert set().union(*(codes for _, codes in promised())) == set(TYPES)


def test_a_code_has_the_statuses_that_the_contract_gives_it() -> None:
    for statuses, codes in promised():
        for code in codes:
            assert statuses & set(TYPES[code].statuses), f"{code} is {TYPES[code].statuses}, not {statuses}"


def test_the_usual_code_of_every_status_is_in_the_table() -> None:
    assert [code for status, code in CODES.items() if status not in TYPES[code].statuses] == []


def test_what_a_problem_means_and_what_to_do_are_sentences() -> None:
    texts = [text for kind in TYPES.values() for text in (kind.meaning, kind.remedy)]

    assert [text for text in texts if not text.endswith(".")] == []


def test_the_error_catalogue_of_the_manual_is_made_from_the_table() -> None:
    assert CATALOGUE.read_text() == document(), "python -m chassis.problem_document > docs/manual/errors.md"
