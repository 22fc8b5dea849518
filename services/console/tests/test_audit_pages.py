"""The audit log of the organization, the outbox, and statements of accounts."""

import json

import pytest
import requests
from people import TIMEOUT_S

from chassis.outbox.explanations import MEANINGS
from console import administration, outbox
from tip_testing.waiting import eventually

XSS = "<img/src=x/onerror=alert(1)>"


@pytest.fixture(scope="module")
def signed(stack):
    """The paper account, with a log that is signed."""
    spec = {"Limit": {"quantity": "1", "limit_price": "1"}}
    command = {"type": "CREATE", "payload": {"symbol": "AAPL", "order_side": "BUY", "spec": spec}}
    stack.call("POST", f"/v1/accounts/{stack.account()}/intents", {"command": command}, key=stack.key())
    eventually(lambda: statement(stack).status_code == 200)
    return f"/console/accounts/{stack.account()}"


def statement(stack):
    headers = {"x-api-key": stack.key()}
    return requests.get(f"{stack.base}/v1/accounts/{stack.account()}/statement", headers=headers, timeout=TIMEOUT_S)


def test_a_change_is_in_the_log_with_who_made_it_and_text_stays_text(stack, signed_in):
    admin = signed_in("admin")
    admin.submit("/console/people/invitations", subject=XSS, role="member")
    page = admin.get("/console/audit-log?type=invitation.created").text

    assert "invitation created" in page and "&lt;img/src=x" in page and XSS not in page
    assert stack.logins["admin"]["email"] in page and "login signed in</th>" not in page


def test_the_log_has_pages(stack, signed_in):
    admin = signed_in("admin")
    path = f"/v1/organizations/{stack.local['organizations']['acme']['id']}/invitations"
    for _ in range(51):
        stack.call("POST", path, {"subject": "again@acme.example", "role": "member"})
    page = admin.get("/console/audit-log?target=again%40acme.example").text
    older = page.split('<a class="button" href="?')[1].split('"')[0].replace("&amp;", "&")

    assert page.count("<tr>") == 51
    assert "again@acme.example" in admin.get(f"/console/audit-log?{older}").text


def test_the_log_is_downloaded_as_the_api_writes_it(signed_in):
    file = signed_in("admin").get("/console/audit-log/export?type=login.signed_in")

    assert file.headers["Content-Type"] == "application/jsonl" and "attachment" in file.headers["Content-Disposition"]
    assert {json.loads(line)["type"] for line in file.text.splitlines()} == {"login.signed_in"}


def test_the_log_is_for_admins(signed_in):
    reader = signed_in("reader")

    assert "The audit log is for admins" in reader.get("/console/audit-log").text
    assert reader.get("/console/audit-log/export").status_code == 403


def test_a_filter_that_the_api_does_not_know_is_refused(signed_in):
    assert signed_in("admin").get("/console/audit-log?type=nonsense").status_code == 400


def test_an_entry_says_what_changed_from_what_to_what():
    entry = {
        "from": {"role": "member"},
        "to": {"role": "admin", "disabled": False, "permissions": ["a", "b"], "bounds": None},
    }

    assert [(change.field, change.before, change.after) for change in administration.changes(entry)] == [
        ("role", "member", "admin"),
        ("disabled", "", "no"),
        ("permissions", "", "a, b"),
    ]
    assert (
        administration.changes({"from": {"bounds": {"symbols": ["A"]}}, "to": None})[0].before == '{"symbols": ["A"]}'
    )


def test_operators_see_the_four_states_of_the_outbox(signed_in):
    page = signed_in("admin").get("/console/outbox").text

    for state in ("pending", "processing", "failed", "completed"):
        assert f">{state}</span></dt>" in page


@pytest.mark.parametrize("name", ["reader", "stranger"])
def test_others_see_why_the_outbox_is_not_shown(signed_in, name):
    page = signed_in(name).get("/console/outbox")

    assert page.status_code == 200 and "INTERNAL_ORGANIZATIONS" in page.text
    assert "By event type" not in page.text


def test_states_are_drawn_to_one_scale_and_a_single_row_can_be_seen():
    entry = {"status": "failed", "event_type": "account.created", "oldest_created_at": "2026-01-05T12:00:00Z"}
    report = {"pending": 0, "processing": 0, "failed": 1, "completed": 900, "redriven": 0, "entries": [entry]}
    shares = {state.name: (state.share, state.oldest_at) for state in outbox.states(report, MEANINGS)}

    assert shares["completed"] == (100, None) and shares["failed"] == (1, "2026-01-05T12:00:00Z")
    assert shares["pending"] == (0, None) and outbox.unanswered(report) == 1


def test_a_statement_is_downloaded_byte_by_byte_as_the_api_writes_it(signed_in, signed, stack):
    file = signed_in("reader").get(f"{signed}/statement?from=&to=")
    lines = file.content.splitlines(keepends=True)

    assert file.status_code == 200 and file.headers["Content-Type"] == "application/jsonl"
    assert lines[0] == statement(stack).content.splitlines(keepends=True)[0]
    assert b'{"signed_head":' in lines[-1]


def test_days_are_those_of_utc(signed_in, signed):
    file = signed_in("reader").get(f"{signed}/statement?from=2026-01-05")
    assert json.loads(file.content.splitlines()[0])["from"] == "2026-01-05T00:00:00.000000Z"


@pytest.mark.parametrize("period", ["from=soon", "from=2026-02-02&to=2026-01-01", "to=31-01-2026"])
def test_a_period_that_is_none_is_refused_with_the_reason(signed_in, signed, period):
    page = signed_in("reader").get(f"{signed}/statement?{period}")

    assert page.status_code == 400 and "bad_time" in page.text


def test_statements_of_others_are_not_found(signed_in, signed):
    stranger = signed_in("stranger")
    for path in (signed, "/console/accounts/no-id"):
        assert stranger.get(f"{path}/audit").status_code == 404
        assert stranger.get(f"{path}/statement").status_code == 404


def test_whoever_is_not_signed_in_is_sent_to_sign_in(signed, stack):
    for path in (f"{signed}/statement", "/console/people", "/console/keys", "/console/audit-log", "/console/outbox"):
        answer = requests.get(f"{stack.base}{path}", allow_redirects=False, timeout=TIMEOUT_S)
        assert answer.status_code == 303 and "/console/sign-in?next=" in answer.headers["Location"]
