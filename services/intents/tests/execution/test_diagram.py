"""The drawing of the life cycle is made from its table."""

from pathlib import Path

from intents.model import lifecycle

DRAWING = Path(__file__).parents[2] / "LIFECYCLE.md"


def drawn() -> str:
    return (
        "# The life of an intent\n\nDrawn from `model/lifecycle.py` by `model.lifecycle.diagram()`; a test compares.\n\n"
        f"```mermaid\n{lifecycle.diagram()}\n```\n"
    )


def test_the_drawing_shows_the_table_as_it_is():
    assert DRAWING.read_text() == drawn(), "write drawn() to LIFECYCLE.md again"
