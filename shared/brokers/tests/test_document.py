"""docs/brokers.md says what the descriptions say."""

from pathlib import Path

from tip_brokers import installed
from tip_brokers.document import document


def test_the_document_is_that_of_the_descriptions() -> None:
    written = (Path(__file__).parents[3] / "docs" / "brokers.md").read_text()

    assert written == document(installed().values()), "run: python -m tip_brokers.document > docs/brokers.md"
