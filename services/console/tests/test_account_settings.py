"""Accounts are connected, tested and closed on the console, and no page ever holds a secret."""

from uuid import uuid4

import pytest
from people import Visitor, hidden

from console import administration
from tip_testing.waiting import eventually

XSS = "<img src=x onerror=alert(1)>"
NOTHING = "00000000-0000-4000-8000-000000000000"
FORMS = ("settings", "disable", "enable", "close", "test", "credentials")
CREDENTIAL_FORMS = ("test", "rotate", "revoke")


def secret(key_id="AKCONSOLE"):
    return {"secret.key_id": key_id, "secret.secret_key": f"hush-{uuid4().hex}"}


@pytest.fixture
def admin(signed_in) -> Visitor:
    return signed_in("admin")


@pytest.fixture
def account(stack, admin):
    """An account at the paper broker that nobody else uses."""
    page = admin.submit("/console/connect", broker="paper", environment="paper", name="desk", time_zone="UTC")
    yield page.url.removeprefix(stack.base).removesuffix("/settings")
    stack.call("DELETE", f"/v1{page.url.removeprefix(f'{stack.base}/console').removesuffix('/settings')}")


@pytest.fixture
def live_account(stack, admin):
    form = {"broker": "paper", "environment": "live", "name": "real desk", "time_zone": "UTC", "confirmed": "yes"}
    page = admin.submit("/console/connect", **form)
    yield page.url.removeprefix(stack.base).removesuffix("/settings")
    stack.call("DELETE", f"/v1{page.url.removeprefix(f'{stack.base}/console').removesuffix('/settings')}")


def version(visitor, path):
    return hidden(visitor.get(path).text)["version"]


def add(visitor, account, label="main", **form):
    return visitor.submit(f"{account}/credentials", label=label, **(form or secret()))


def credential_path(stack, account):
    [found] = stack.call("GET", f"/v1{account.removeprefix('/console')}/credentials")["data"]
    return f"{account}/credentials/{found['id']}"


def test_an_account_is_connected_at_any_broker_that_is_installed(stack, admin):
    page = admin.get("/console/connect").text
    brokers = stack.call("GET", "/v1/brokers")["data"]

    assert brokers and all(f">{broker['title']}</a>" in page for broker in brokers)
    for broker in brokers:
        form = admin.get(f"/console/connect?broker={broker['name']}").text
        assert all(f"<option>{environment}</option>" in form for environment in broker["environments"])


def test_a_broker_that_is_not_installed_is_not_found(admin):
    assert admin.get("/console/connect?broker=nobody").status_code == 404


def test_what_the_api_refuses_of_a_new_account_is_explained_and_stays_filled_in(admin):
    form = {"broker": "paper", "environment": "paper", "name": "desk 9", "time_zone": "Mars/Olympus"}
    page = admin.submit("/console/connect", **form)

    assert page.status_code == 422
    assert "time zone: must be a time zone of the IANA database" in page.text and 'value="desk 9"' in page.text


def test_a_live_account_is_connected_after_a_question(stack, admin):
    form = {"broker": "paper", "environment": "live", "name": "real", "time_zone": "UTC"}
    before = len(stack.call("GET", "/v1/accounts?limit=99")["data"])
    page = admin.submit("/console/connect", **form)

    assert "Connect LIVE real</button>" in page.text
    assert len(stack.call("GET", "/v1/accounts?limit=99")["data"]) == before


def test_the_form_of_a_credential_is_what_its_broker_describes(admin, account):
    page = admin.get(f"{account}/settings").text

    assert 'name="secret.key_id" type="text"' in page and 'name="secret.secret_key" type="password"' in page


def test_a_credential_becomes_active_when_the_broker_accepts_it_and_its_secret_is_in_no_page(stack, admin, account):
    given = secret()
    page = add(admin, account, **given)
    path = credential_path(stack, account)
    eventually(lambda: 'class="state good">active' in admin.get(path).text)

    pages = page.text + admin.get(path).text + admin.get(f"{account}/settings").text
    assert given["secret.secret_key"] not in pages and given["secret.key_id"] not in pages


def test_a_secret_that_the_broker_refuses_is_invalid_until_it_is_rotated(stack, admin, account):
    add(admin, account, **secret("INVALID-1"))
    path = credential_path(stack, account)
    eventually(lambda: 'class="state bad">invalid' in admin.get(path).text)
    page = admin.submit(f"{path}/rotate", version=version(admin, path), **secret())

    assert page.status_code == 200
    eventually(lambda: 'class="state good">active' in admin.get(path).text)
    assert '<dd class="figure">2</dd>' in admin.get(path).text


@pytest.mark.parametrize("key", ["hush ", " hush", "hush\r\nhush"])
def test_a_secret_is_sent_as_it_was_typed_and_so_refused_where_the_broker_has_no_spaces(stack, admin, account, key):
    page = add(admin, account, **{"secret.key_id": "AK", "secret.secret_key": key})

    assert page.status_code == 422
    assert stack.call("GET", f"/v1{account.removeprefix('/console')}/credentials")["data"] == []


@pytest.mark.parametrize(("pattern", "is_long"), [(r"[\n -~]+", True), ("[!-~]+", False), ("[", False)])
def test_a_secret_of_several_lines_has_a_field_of_several_lines(pattern, is_long):
    assert administration.has_lines({"pattern": pattern}) is is_long


def test_a_refused_credential_keeps_its_label_and_nothing_of_its_secret(admin, account):
    page = add(admin, account, "first", **{"secret.key_id": "AK-VISIBLE", "secret.secret_key": "with space"})

    assert page.status_code == 422 and 'value="first"' in page.text and "secret key: must" in page.text
    assert "AK-VISIBLE" not in page.text and "with space" not in page.text


def test_a_credential_is_revoked_after_a_question(stack, admin, account):
    add(admin, account)
    path = credential_path(stack, account)
    number = version(admin, path)
    question = admin.submit(f"{path}/revoke", version=number)
    assert "Revoke main of PAPER desk</button>" in question.text

    admin.submit(f"{path}/revoke", version=number, confirmed="yes")
    assert stack.call("GET", f"/v1{account.removeprefix('/console')}/credentials")["data"] == []


def test_a_credential_of_a_live_account_is_taken_only_with_the_tick_and_never_repeated(stack, admin, live_account):
    given = secret()
    page = add(admin, live_account, **given)
    assert page.status_code == 422 and "tick that you mean it" in page.text
    assert given["secret.secret_key"] not in page.text
    assert stack.call("GET", f"/v1{live_account.removeprefix('/console')}/credentials")["data"] == []

    add(admin, live_account, confirmed="yes", **given)
    assert credential_path(stack, live_account)


def test_changes_of_a_live_account_ask_again(admin, live_account):
    page = admin.submit(f"{live_account}/disable", reason="storm")
    assert "Disable: no new order is taken on real desk</button>" in page.text
    assert 'class="top is-live"' in page.text

    page = admin.submit(f"{live_account}/disable", reason="storm", confirmed="yes")
    assert 'class="state bad">disabled' in page.text and "<dd>storm</dd>" in page.text


def test_the_question_about_settings_names_what_changes(admin, live_account):
    form = {"name": "real desk", "time_zone": "UTC", "broker_account_id": "U-77"}
    page = admin.submit(f"{live_account}/settings", **form)

    assert "Change the settings: broker account id U-77 on real desk</button>" in page.text


def test_an_account_is_renamed_disabled_and_enabled_and_text_stays_text(admin, account):
    number = version(admin, f"{account}/settings")
    admin.submit(f"{account}/settings", version=number, name=XSS, time_zone="America/New_York")
    page = admin.submit(f"{account}/disable", reason=XSS)

    assert XSS not in page.text and "&lt;img src=x" in page.text and "America/New_York" in page.text
    assert 'class="state good">enabled' in admin.submit(f"{account}/enable").text


def test_a_change_of_what_somebody_else_has_changed_is_refused(admin, account):
    number = version(admin, f"{account}/settings")
    admin.submit(f"{account}/settings", version=number, name="theirs", time_zone="UTC")
    page = admin.submit(f"{account}/settings", version=number, name="mine", time_zone="UTC")

    assert page.status_code == 412 and 'role="alert"' in page.text
    assert 'value="theirs"' in page.text


def test_an_account_is_closed_after_a_question(stack, admin):
    page = admin.submit("/console/connect", broker="paper", environment="paper", name="brief", time_zone="UTC")
    path = page.url.removeprefix(stack.base).removesuffix("/settings")
    assert "Close PAPER brief</button>" in admin.submit(f"{path}/close").text
    assert admin.get(f"{path}/settings").status_code == 200

    assert admin.submit(f"{path}/close", confirmed="yes").url == f"{stack.base}/console"
    assert admin.get(f"{path}/settings").status_code == 404


def test_an_account_is_read_at_its_broker_to_test_the_way_there(stack, signed_in):
    reader, path = signed_in("reader"), f"/console/accounts/{stack.account()}"
    before = stack.call("GET", f"/v1/accounts/{stack.account()}/balances")["as_of"]

    assert reader.submit(f"{path}/test").status_code == 200
    eventually(lambda: stack.call("GET", f"/v1/accounts/{stack.account()}/balances")["as_of"] != before)


def test_who_may_only_read_sees_no_forms_and_is_refused(stack, signed_in, admin, account):
    reader = signed_in("reader")
    page = reader.get(f"{account}/settings")
    assert page.status_code == 200 and "Add a credential" not in page.text

    assert reader.submit(f"{account}/disable").status_code == 403
    assert reader.submit(f"{account}/credentials", label="mine", **secret()).status_code == 403
    assert reader.submit(f"{account}/close", confirmed="yes").status_code == 403
    form = {"broker": "paper", "environment": "paper", "name": "mine", "time_zone": "UTC"}
    assert reader.submit("/console/connect", **form).status_code == 403
    assert 'class="state good">enabled' in admin.get(f"{account}/settings").text


def test_accounts_of_others_look_like_accounts_that_do_not_exist(stack, signed_in, account):
    stranger = signed_in("stranger")
    for path in (account, f"/console/accounts/{NOTHING}", "/console/accounts/no-id"):
        assert stranger.get(f"{path}/settings").status_code == 404
        assert [stranger.submit(f"{path}/{form}", confirmed="yes").status_code for form in FORMS] == [404] * len(FORMS)
    own = f"/console/accounts/{stack.account('globex')}/credentials"
    for credential in (NOTHING, "no-id"):
        assert stranger.get(f"{own}/{credential}").status_code == 404
        assert stranger.submit(f"{own}/{credential}/test").status_code == 404
        assert stranger.submit(f"{own}/{credential}/rotate", confirmed="yes").status_code == 404
        assert stranger.submit(f"{own}/{credential}/revoke", confirmed="yes").status_code == 404


def test_forms_need_the_token_of_the_session(stack, admin, account):
    add(admin, account)
    credential = credential_path(stack, account)
    paths = [f"{account}/{form}" for form in FORMS] + [f"{credential}/{form}" for form in CREDENTIAL_FORMS]
    token = hidden(admin.get("/console").text)["csrf"]
    for path in (*paths, "/console/connect"):
        assert admin.post(path, {"confirmed": "yes"}).status_code == 403
        assert admin.post(path, {"csrf": token, "confirmed": "yes"}, Origin="https://evil.example").status_code == 403
