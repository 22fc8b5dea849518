"""API keys: made with permissions and bounds, shown once, disabled."""

import re
from uuid import uuid4

import pytest
import requests
from people import TIMEOUT_S, Visitor, hidden

from console.administration import NewKey

XSS = "<img src=x onerror=alert(1)>"
FORMS = ("rename", "disable", "enable", "delete")


@pytest.fixture
def admin(signed_in) -> Visitor:
    return signed_in("admin")


@pytest.fixture
def made(stack, admin):
    """A key: its page, and what only that page shows."""
    page = create(admin, account=stack.account(), symbols="aapl, MSFT", max_notional_per_day="5000")
    yield page
    stack.call("DELETE", f"/v1/api-keys/{key_id(page)}")


def create(visitor, name="", **form):
    given = {"name": name or f"bot {uuid4().hex[:8]}", "environment": "paper", "permission": "intent:edit"}
    return visitor.submit("/console/keys/new", **given | form)


def shown_key(page):
    return re.search(r'data-copy="(tip_\w+)"', page.text)[1]


def key_id(page):
    return re.search(r'action="/console/keys/([0-9a-f-]{36})/rename"', page.text)[1]


def uses(stack, key):
    return requests.get(f"{stack.base}/v1/auth/self", headers={"x-api-key": key}, timeout=TIMEOUT_S)


def test_a_key_is_made_with_what_it_may_do_and_what_it_is_bound_to(stack, made):
    found = uses(stack, shown_key(made)).json()

    assert made.status_code == 201 and found["permissions"] == ["intent:edit"]
    assert found["bounds"] == {
        "accounts": [stack.account()],
        "symbols": ["AAPL", "MSFT"],
        "max_notional_per_day": "5000",
    }


def test_a_key_is_shown_once(admin, made):
    later = admin.get(f"/console/keys/{key_id(made)}").text + admin.get("/console/keys").text

    assert shown_key(made) not in later and made.headers["Cache-Control"] == "no-store"


def test_a_key_ends_with_the_day_that_was_chosen(stack, admin):
    page = create(admin, expires_on="2030-06-30")
    found = stack.call("GET", f"/v1/api-keys/{key_id(page)}")

    assert found["expires_at"].startswith("2030-06-30T23:59:59") and found["bounds"] is None
    stack.call("DELETE", f"/v1/api-keys/{key_id(page)}")


@pytest.mark.parametrize(
    "form", [{"permission": []}, {"expires_on": "2020-01-01"}, {"max_notional_per_day": "much"}, {"account": "no-id"}]
)
def test_what_the_api_refuses_of_a_key_is_explained_and_stays_filled_in(admin, form):
    page = create(admin, "night bot", symbols="AAPL", **form)

    assert page.status_code == 422 and 'role="alert"' in page.text
    assert 'value="night bot"' in page.text and 'value="AAPL"' in page.text


def test_a_disabled_key_is_refused_until_it_is_enabled(stack, admin, made):
    path, key = f"/console/keys/{key_id(made)}", shown_key(made)
    assert 'class="state bad">disabled' in admin.submit(f"{path}/disable").text
    assert uses(stack, key).status_code == 401

    assert 'class="state good">enabled' in admin.submit(f"{path}/enable").text
    assert uses(stack, key).status_code == 200


def test_bounds_are_counted_in_the_list(admin, made):
    assert "1 account 2 symbols" in re.sub(r"\s+", " ", admin.get("/console/keys").text)


def test_a_key_is_deleted_after_a_question(stack, admin):
    page = create(admin, "spare")
    path = f"/console/keys/{key_id(page)}"
    assert "Delete PAPER spare</button>" in admin.submit(f"{path}/delete").text
    assert uses(stack, shown_key(page)).status_code == 200

    assert admin.submit(f"{path}/delete", confirmed="yes").url == f"{stack.base}/console/keys"
    assert admin.get(path).status_code == 404


def test_live_keys_ask_again(stack, admin):
    form = {"environment": "live", "permission": ["intent:read", "account:read"]}
    question = create(admin, "real bot", **form)
    assert "Create LIVE real bot</button>" in question.text and "intent:read, account:read" in question.text
    assert question.text.count('name="permission"') == 2

    page = create(admin, "real bot", **form, confirmed="yes")
    path = f"/console/keys/{key_id(page)}"
    assert "Disable LIVE real bot</button>" in admin.submit(f"{path}/disable").text
    assert "Delete LIVE real bot</button>" in admin.submit(f"{path}/delete").text
    admin.submit(f"{path}/delete", confirmed="yes")


def test_names_of_keys_are_text(stack, admin, made):
    page = admin.submit(f"/console/keys/{key_id(made)}/rename", name=XSS)

    assert XSS not in page.text + admin.get("/console/keys").text and "&lt;img src=x" in page.text


def test_who_is_no_admin_sees_why_not_and_is_refused(stack, signed_in, made):
    reader, path = signed_in("reader"), f"/console/keys/{key_id(made)}"
    page = reader.get("/console/keys")
    assert page.status_code == 200 and "Keys are listed for admins" in page.text

    assert reader.get(path).status_code == 403
    assert create(reader).status_code == 403
    assert [reader.submit(f"{path}/{form}", confirmed="yes", name="x").status_code for form in FORMS] == [403] * 4
    assert uses(stack, shown_key(made)).status_code == 200


def test_another_organizations_admin_finds_no_key_of_ours(stack, signed_in, made):
    stranger = signed_in("stranger")
    for path in (f"/console/keys/{key_id(made)}", "/console/keys/no-id"):
        assert stranger.get(path).status_code == 404
        assert [stranger.submit(f"{path}/{form}", confirmed="yes", name="x").status_code for form in FORMS] == [404] * 4
    assert uses(stack, shown_key(made)).status_code == 200


def test_forms_need_the_token_of_the_session(admin, made):
    token = hidden(admin.get("/console").text)["csrf"]
    for path in ("/console/keys/new", *(f"/console/keys/{key_id(made)}/{form}" for form in FORMS)):
        assert admin.post(path, {"confirmed": "yes"}).status_code == 403
        assert admin.post(path, {"csrf": token, "confirmed": "yes"}, Origin="https://evil.example").status_code == 403


def test_a_key_without_bounds_has_none():
    assert NewKey("bot", permissions=["intent:read"]).body == {
        "name": "bot", "environment": "paper", "permissions": ["intent:read"], "expires_at": None, "bounds": None,
    }  # fmt: skip
