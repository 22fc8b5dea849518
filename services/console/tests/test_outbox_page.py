"""Failed outbox rows on the console: those who run the platform see why, and redrive them."""

import pytest
from failed_rows import fail_row, redriven_from

REASON = "a sealed secret was altered or moved, or is under another key"


@pytest.fixture
def row(stack):
    return fail_row(stack, "BrokenSeal")


def test_a_failed_row_is_shown_with_its_reason(signed_in, row):
    page = signed_in("admin").get("/console/outbox").text

    assert REASON in page and f'action="/console/outbox/{row}/redrive"' in page
    assert "not redriven yet" in page


def test_an_error_is_text_and_never_markup(stack, signed_in):
    fail_row(stack, "<img src=x>")
    page = signed_in("admin").get("/console/outbox").text

    assert "the work of the row raised &lt;img src=x&gt;" in page and "<img" not in page


def test_a_row_is_redriven_after_a_question(stack, signed_in, row):
    admin = signed_in("admin")

    question = admin.submit(f"/console/outbox/{row}/redrive")
    assert f"Redrive row {row}?" in question.text and redriven_from(stack, row) == []

    page = admin.submit(f"/console/outbox/{row}/redrive", confirmed="yes")
    [copy] = redriven_from(stack, row)
    assert page.url.endswith("/console/outbox") and f"/console/outbox/{row}/redrive" not in page.text
    redriven = admin.get("/console/outbox?redriven=true").text
    assert f"as row {copy}" in redriven and f"/console/outbox/{row}/redrive" not in redriven

    assert admin.submit(f"/console/outbox/{row}/redrive", confirmed="yes").status_code == 200
    assert redriven_from(stack, row) == [copy], "a second time changes nothing"


@pytest.mark.parametrize("name", ["trader", "reader", "stranger"])
def test_nobody_else_redrives_a_row(stack, signed_in, row, name):
    answer = signed_in(name).submit(f"/console/outbox/{row}/redrive", confirmed="yes")

    assert answer.status_code == 403 and "INTERNAL_ORGANIZATIONS" in answer.text and REASON not in answer.text
    assert redriven_from(stack, row) == []


def test_a_form_of_another_site_redrives_nothing(stack, signed_in, row):
    answer = signed_in("admin").post(f"/console/outbox/{row}/redrive", {"confirmed": "yes"})

    assert answer.status_code == 403 and redriven_from(stack, row) == []


@pytest.mark.parametrize("name", ["0", "x", "-1", "%2e%2e", "%00", "9" * 19, "9" * 30, "9" * 3000, "٣"])
def test_what_names_no_failed_row_is_not_found(signed_in, name):
    assert signed_in("admin").submit(f"/console/outbox/{name}/redrive", confirmed="yes").status_code == 404


def test_a_cursor_that_is_none_is_refused_with_the_reason(signed_in):
    page = signed_in("admin").get("/console/outbox?next_cursor=x")

    assert page.status_code == 400 and "bad_cursor" in page.text
