"""The matrix finds an endpoint without a row, a row without an endpoint, and an answer that is not the row's."""

from typing import Any

import pytest
from flask import Flask

from tip_testing.caller_matrix import Row, differences, uncovered

HEADERS: dict[str, dict[str, str]] = {"admin": {"x-role": "admin"}, "nobody": {}}


@pytest.fixture
def app() -> Flask:
    app = Flask("small")

    def view(thing_id: Any) -> Any:
        return "gone", 204

    view.alternatives = ()  # type: ignore[attr-defined]
    app.add_url_rule("/things/<uuid:thing_id>", "things", view, methods=["DELETE"])
    app.add_url_rule("/health/live", "health", lambda: "live")
    return app


def row(path: str, **expected: int) -> Row:
    thing = "8f6a4a3e-0000-4000-8000-000000000000"
    return Row("DELETE", path, expected, lambda: {"path": path.format(thing_id=thing)})


def test_an_endpoint_without_a_row_and_a_row_without_an_endpoint_are_found(app: Flask) -> None:
    there, nowhere = row("/things/{thing_id}"), row("/other")

    assert uncovered(app, [there]) == set()
    assert uncovered(app, []) == {("DELETE", "/things/{thing_id}")}
    assert uncovered(app, [there, nowhere]) == {("DELETE", "/other")}


def test_an_answer_that_is_not_the_rows_is_found(app: Flask) -> None:
    found = differences(app.test_client(), HEADERS.__getitem__, row("/things/{thing_id}", admin=204, nobody=401))

    assert list(found) == ["nobody"] and found["nobody"].startswith("expected 401, got 204")


def test_a_refusal_that_is_no_problem_document_is_found(app: Flask) -> None:
    found = differences(app.test_client(), HEADERS.__getitem__, row("/nothing", nobody=404))

    assert found == {"nobody": "404 as text/html; charset=utf-8"}
