"""Pages that answer a form lead to addresses that can be loaded: their themes, Back and Try again."""

import re

import pytest

NOTHING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def admin(signed_in):
    return signed_in("admin")


def where(page):
    return re.search(r'<body data-here="([^"]*)"', page.text)[1]


@pytest.mark.parametrize(
    ("form", "page"),
    [
        ("/console/people/role", "/console/people"),
        (f"/console/people/invitations/{NOTHING}/withdraw", "/console/people"),
        (f"/console/keys/{NOTHING}/delete", f"/console/keys/{NOTHING}"),
        ("/console/accounts/{account}/close", "/console/accounts/{account}/settings"),
        ("/console/accounts/{account}/credentials", "/console/accounts/{account}/settings"),
        ("/console/accounts/{account}/key", "/console/accounts/{account}/ticket"),
        ("/console/accounts/{account}/risk/symbols/BTC/USD", "/console/accounts/{account}/risk/symbols/BTC/USD"),
        (f"/console/accounts/{{account}}/orders/{NOTHING}/cancel", f"/console/accounts/{{account}}/orders/{NOTHING}"),
        (
            f"/console/accounts/{{account}}/credentials/{NOTHING}/revoke",
            f"/console/accounts/{{account}}/credentials/{NOTHING}",
        ),
    ],
)
def test_the_answer_to_a_form_names_the_page_that_the_form_is_on(stack, admin, form, page):
    account = stack.account()
    answer = admin.submit(form.format(account=account), subject="nobody@acme.example", role="x", key="x")

    assert where(answer) == page.format(account=account)
    assert f'name="next" value="{where(answer)}"' in answer.text or "<header" not in answer.text


def test_a_question_leads_back_to_the_page_of_its_form(stack, admin):
    account = f"/console/accounts/{stack.account()}"
    question = admin.submit(f"{account}/close")

    assert f'href="{account}/settings">Back</a>' in question.text
    live = f"/console/accounts/{stack.account(environment='live')}"
    assert f'href="{live}/settings">Back</a>' in admin.submit(f"{live}/disable").text
