"""When the platform does not answer: nothing that is shown once is lost, and nobody is led to do a thing twice."""

import re
from uuid import uuid4

import pytest
from lost_calls import Desk
from risk_desk import control, new_account, submit

from tip_testing.waiting import eventually


@pytest.fixture
def desk(stack, signed_in):
    """A console whose calls are lost by a rule, which also sees the calls before."""

    opened = []

    def start(is_lost):
        desk = Desk(stack, signed_in("admin"), lambda request: is_lost(request, desk.methods))
        opened.append(desk)
        return desk

    yield start
    for desk in opened:
        desk.close()


def is_after_a_change(_, methods):
    return "POST" in methods


def is_a_change(request, _):
    return request.method != "GET"


def is_a_preview(request, _):
    return request.url.path.endswith("/preview")


def test_a_new_key_is_shown_although_nothing_can_be_read_after_it(stack, desk):
    form = {"name": "lost", "environment": "paper", "permission": "intent:read"}
    page = desk(is_after_a_change).submit("/console/keys/new", **form)

    assert page.status_code == 201 and 'data-copy="tip_' in page.text
    [made] = [key for key in stack.call("GET", "/v1/api-keys?limit=99")["data"] if key["name"] == "lost"]
    stack.call("DELETE", f"/v1/api-keys/{made['id']}")


def test_the_codes_of_an_invitation_are_shown_although_nothing_can_be_read_after_it(desk):
    subject = f"{uuid4().hex[:8]}@acme.example"
    page = desk(is_after_a_change).submit("/console/people/invitations", subject=subject, role="member")

    assert page.status_code == 200 and page.text.count('class="shown" data-copy="') == 2
    assert f'<th scope="row" class="wrap">{subject}</th>' in page.text


@pytest.mark.parametrize(
    ("path", "form", "page"),
    [
        ("/console/keys/new", {"name": "x", "environment": "paper", "permission": "intent:read"}, "/console/keys/new"),
        ("/console/people/invitations", {"subject": "x@acme.example", "role": "member"}, "/console/people"),
    ],
)
def test_of_a_change_without_an_answer_it_is_not_known_whether_it_was_made(desk, path, form, page):
    answer = desk(is_a_change).submit(path, **form)

    assert answer.status_code == 503 and "It is not known whether this was done" in answer.text
    assert f'href="{page}">Look</a>' in answer.text and 'href="/console">To the accounts' in answer.text
    assert "Try again" not in answer.text and "Nothing was changed" not in answer.text


def test_before_a_change_nothing_was_changed_and_the_form_can_be_loaded_again(desk):
    form = {"subject": "x@acme.example", "role": "admin"}
    answer = desk(lambda request, _: request.url.path == "/v1/users/me").submit("/console/people/role", **form)

    assert answer.status_code == 503 and "Nothing was changed" in answer.text
    assert 'href="/console/people">Try again</a>' in answer.text


def test_the_kill_switch_works_while_orders_cannot_be_counted(stack, desk):
    account = new_account(stack, "kill")
    page, cut = f"/console/accounts/{account}/risk", desk(is_a_preview)
    control(stack, account, "PUT", "/limits", {"max_open_orders": 3})
    shown = cut.get(page)
    assert shown.status_code == 200 and "Halt and cancel all open orders</button>" in shown.text
    assert "cannot be counted at this moment" in shown.text

    assert cut.submit(page, state="CANCEL").status_code == 303
    assert control(stack, account, "GET")["trading_state"] == "HALTED"


def test_the_question_of_the_kill_switch_needs_no_count(stack, desk):
    page = f"/console/accounts/{stack.account(environment='live')}/risk"
    question = desk(is_a_preview).submit(page, state="CANCEL")

    assert "Halt and cancel all open orders on live account</button>" in question.text


def test_a_confirmed_kill_switch_makes_no_preview(stack, desk):
    page = f"/console/accounts/{new_account(stack, 'quick')}/risk"
    recorded = desk(lambda *_: False)
    assert recorded.submit(page, state="CANCEL", confirmed="yes").status_code == 303

    assert not any(path.endswith("/preview") for path in recorded.paths)


def test_keys_are_read_for_their_names_alone(stack, desk):
    account = new_account(stack, "names")
    recorded = desk(lambda *_: False)
    recorded.get(f"/console/accounts/{account}/risk")
    assert recorded.paths and "/v1/api-keys" not in recorded.paths

    stack.call("PUT", f"/v1/controls/accounts/{account}", {"trading_state": "ACTIVE"}, key=stack.key())
    recorded.get(f"/console/accounts/{account}/risk")
    assert "/v1/api-keys" in recorded.paths


def test_what_happens_while_an_orders_page_is_read_is_shown_or_still_to_come(stack, desk):
    """The stream begins where the page says: what it does not show and what comes no more would be missing for ever."""
    account = new_account(stack, "meanwhile")
    order = f"/v1/accounts/{account}/intents/{submit(stack, account)['intent_id']}"
    eventually(lambda: stack.call("GET", order)["state"]["status"] == "ACCEPTED")
    reads = []

    def cancel_between(request, _):
        if request.url.path.startswith(order):
            reads.append(request.url.path)
        if len(reads) == 2 and stack.call("GET", order)["state"]["status"] == "ACCEPTED":
            command = {"command": {"type": "CANCEL", "payload": {"ref_intent_id": order.rsplit("/", maxsplit=1)[-1]}}}
            stack.call("POST", f"/v1/accounts/{account}/intents", command, key=stack.key())
            eventually(lambda: stack.call("GET", order)["state"]["status"] == "CANCELED")
        return False

    page = desk(cancel_between).get(f"/console/accounts/{account}/orders/{order.rsplit('/', maxsplit=1)[-1]}").text

    begins_after = int(re.search(r'data-after="(\d+)"', page)[1])
    ends = max(entry["sequence"] or 0 for entry in stack.call("GET", f"{order}/timeline")["data"])
    assert len(reads) >= 2
    assert "canceled</span>" in page or begins_after < ends
