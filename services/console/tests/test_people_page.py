"""People and their invitations, as far as the API lets whoever is signed in see and change them."""

from uuid import uuid4

import pytest
from people import Visitor, hidden

XSS = "<img/src=x/onerror=alert(1)>"
FORMS = ("role", "remove", "invitations")


@pytest.fixture
def admin(signed_in) -> Visitor:
    return signed_in("admin")


@pytest.fixture
def member(stack):
    """Somebody whom no other test needs."""
    subject = f"{uuid4().hex[:8]}@acme.example"
    stack.call("PUT", f"{members(stack)}/{subject}", {"role": "member"})
    yield subject
    stack.call("DELETE", f"{members(stack)}/{subject}")


def members(stack, organization="acme"):
    return f"/v1/organizations/{stack.local['organizations'][organization]['id']}/memberships"


def invitations(stack):
    return f"/v1/organizations/{stack.local['organizations']['acme']['id']}/invitations"


def test_members_are_listed_with_their_roles(stack, admin, member):
    page = admin.get("/console/people").text

    assert member in page and "(you)" in page
    assert page.count('name="role"') == len(stack.call("GET", f"{members(stack)}?limit=99")["data"]) + 1


def test_a_role_is_changed_and_a_member_removed_after_a_question(stack, admin, member):
    admin.submit("/console/people/role", subject=member, role="read_only")
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "read_only"
    assert f"Remove {member}</button>" in admin.submit("/console/people/remove", subject=member).text
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "read_only"

    admin.submit("/console/people/remove", subject=member, confirmed="yes")
    assert stack.call("GET", f"{members(stack)}/{member}")["code"] == "not_found"


def test_another_admin_and_a_role_of_ones_own_need_a_second_click(stack, admin, member):
    question = admin.submit("/console/people/role", subject=member, role="admin")
    assert f"Make {member} admin</button>" in question.text
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "member"
    admin.submit("/console/people/role", subject=member, role="admin", confirmed="yes")
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "admin"

    own = stack.logins["admin"]["email"]
    assert f"Make {own} read only</button>" in admin.submit("/console/people/role", subject=own, role="read_only").text
    assert stack.call("GET", f"{members(stack)}/{own}")["role"] == "admin"


@pytest.mark.parametrize("subject", ["", ".", ".."])
def test_who_is_nobody_is_not_found(admin, subject):
    assert admin.submit("/console/people/role", subject=subject, role="member").status_code == 404
    assert admin.submit("/console/people/remove", subject=subject, confirmed="yes").status_code == 404


def test_a_role_that_does_not_exist_is_refused_with_the_reason(admin, member):
    page = admin.submit("/console/people/role", subject=member, role="emperor")

    assert page.status_code == 422 and 'role="alert"' in page.text


def test_the_codes_of_an_invitation_are_shown_once(stack, admin):
    subject = f"{uuid4().hex[:8]}@acme.example"
    page = admin.submit("/console/people/invitations", subject=subject, role="member")
    codes = [part.split('"')[0] for part in page.text.split('class="shown" data-copy="')[1:]]
    assert len(codes) == 2 and f"{subject} is invited as member" in page.text
    assert f"{stack.base}/login/invitation" in page.text and page.headers["Cache-Control"] == "no-store"

    later = admin.get("/console/people").text
    assert subject in later and not any(code in later for code in codes)


def test_an_invitation_is_withdrawn(stack, admin):
    subject = f"{uuid4().hex[:8]}@acme.example"
    admin.submit("/console/people/invitations", subject=subject, role="member")
    listed = stack.call("GET", f"{invitations(stack)}?limit=99")["data"]
    [made] = [invitation for invitation in listed if invitation["subject"] == subject]
    path = f"/console/people/invitations/{made['id']}/withdraw"
    question = admin.submit(path)
    assert f"Withdraw the invitation of {subject}</button>" in question.text
    assert subject in admin.get("/console/people").text

    page = admin.submit(path, confirmed="yes")
    assert page.status_code == 200 and subject not in page.text
    assert admin.submit(path, confirmed="yes").status_code == 404
    assert admin.submit("/console/people/invitations/no-id/withdraw").status_code == 404


def test_names_of_people_are_text(stack, admin):
    page = admin.submit("/console/people/invitations", subject=XSS, role="member")
    assert page.status_code == 200 and XSS not in page.text and "&lt;img/src=x" in page.text

    question = admin.submit("/console/people/remove", subject=XSS)
    assert XSS not in question.text and "&lt;img/src=x" in question.text


def test_who_is_no_admin_sees_why_not_and_is_refused(signed_in, stack, member):
    reader = signed_in("reader")
    page = reader.get("/console/people")
    assert page.status_code == 200 and "People are listed for admins" in page.text and "read only of" in page.text
    assert member not in page.text

    for path, form in (
        ("role", {"subject": member, "role": "admin", "confirmed": "yes"}),
        ("remove", {"subject": member, "confirmed": "yes"}),
        ("invitations", {"subject": "friend@acme.example", "role": "admin"}),
    ):
        assert reader.submit(f"/console/people/{path}", **form).status_code == 403
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "member"


def test_another_organizations_admin_reaches_nobody_here(signed_in, stack, member):
    stranger = signed_in("stranger")
    assert member not in stranger.get("/console/people").text

    assert stranger.submit("/console/people/remove", subject=member, confirmed="yes").status_code == 404
    assert stack.call("GET", f"{members(stack)}/{member}")["role"] == "member"


def test_what_the_organization_is_entitled_to_is_shown(signed_in):
    acme, globex = signed_in("reader").get("/console/people").text, signed_in("stranger").get("/console/people").text

    assert acme.count('class="state good">entitled') == 2
    assert globex.count('class="state ended">not entitled') == 2


def test_forms_need_the_token_of_the_session(admin, member):
    token = hidden(admin.get("/console").text)["csrf"]
    for form in FORMS:
        given = {"subject": member, "role": "admin", "confirmed": "yes"}
        assert admin.post(f"/console/people/{form}", given).status_code == 403
        assert admin.post(f"/console/people/{form}", {"csrf": token, **given}, Origin="null").status_code == 403
