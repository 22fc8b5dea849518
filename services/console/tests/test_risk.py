"""Risk: trading state, limits with their use, symbols, refusals and changes, for those who may see and change them."""

import html
import re
from urllib.parse import urlsplit

import pytest
from people import hidden
from risk_desk import XSS, control, new_account, open_count, submit

from tip_testing.waiting import eventually


@pytest.fixture(scope="module")
def account(stack):
    return new_account(stack, "risk")


@pytest.fixture(scope="module")
def page(account):
    return f"/console/accounts/{account}/risk"


@pytest.fixture(scope="module")
def admin(signed_in):
    return signed_in("admin")


def text_of(answer):
    """What is to be read on a page, without its markup."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", answer.text)))


def state_version(stack, account):
    return str(control(stack, account, "GET")["version"])


def test_a_new_account_is_active_and_says_what_to_do(stack, admin):
    shown = text_of(admin.get(f"/console/accounts/{new_account(stack, 'empty')}/risk"))

    assert "ACTIVE Every order that the controls allow" in shown
    for hint in (
        "No limits Set the first one",
        "No symbol has a control",
        "Nothing was refused",
        "Nothing was changed",
    ):
        assert hint in shown


def test_a_halt_refuses_orders_until_it_is_lifted_and_says_who_did_it(stack, admin, account, page):
    halted = admin.submit(page, state="HALTED", reason="loss of the day")
    assert "HALTED No order." in text_of(halted) and "“loss of the day”" in halted.text
    assert submit(stack, account)["reasons"][0]["code"] == "TRADING_HALTED"

    resumed = text_of(admin.submit(page, state="ACTIVE", version=state_version(stack, account)))
    assert "ACTIVE Every order" in resumed
    assert re.search(r"Trading state trading state HALTED, reason loss of the day \S+@acme", resumed)
    assert "intent_id" in submit(stack, account)


def test_the_kill_switch_cancels_what_is_open_and_shows_how_far_it_is(stack, admin, page, account):
    submit(stack, account)
    count = open_count(stack, account)
    noun = "order" if count == 1 else "orders"
    assert f"Halt and cancel {count} open {noun}</button>" in admin.get(page).text

    begun = admin.submit(page, state="CANCEL", reason="stop")
    assert "operation=" in begun.url
    eventually(lambda: re.search(r"All \d+ open orders have ended", admin.get(begun.url).text), 60)
    assert open_count(stack, account) == 0
    admin.submit(page, state="ACTIVE", version=state_version(stack, account))


def test_a_halt_is_not_lifted_by_a_page_from_before_it(stack, admin, page, account):
    control(stack, account, "PUT", "", {"trading_state": "ACTIVE"})
    [shown] = re.findall(
        r'data-part="switch">\s*<input type="hidden" name="version" value="(\d+)"', admin.get(page).text
    )
    control(stack, account, "PUT", "", {"trading_state": "HALTED"})
    for state in ("ACTIVE", "REDUCING"):
        late = admin.submit(page, state=state, version=shown)
        assert late.status_code == 412 and "Somebody else changed this meanwhile" in late.text
        assert admin.submit(page, state=state).status_code == 412
    assert control(stack, account, "GET")["trading_state"] == "HALTED"

    assert admin.submit(page, state="HALTED", version=shown, reason="again").status_code == 200
    control(stack, account, "DELETE")


def test_limits_are_set_drawn_with_their_use_and_removed(stack, admin, page, account):
    submit(stack, account)
    form = {"max_open_orders": "4", "max_notional": "100000", "denied_symbols": "gme, amc", "allow_short": "no"}
    shown = admin.submit(f"{page}/limits", **form)
    limits = control(stack, account, "GET", "/limits")
    assert limits["denied_symbols"] == ["AMC", "GME"] and limits["allow_short"] is False

    share = 25 * open_count(stack, account)
    assert f'aria-label="{share} % used"' in shown.text and f'<rect class="used" width="{share}.0"' in shown.text
    assert "AMC, GME" in shown.text and "not allowed" in shown.text
    edited = admin.get(f"{page}/limits").text
    assert 'name="max_open_orders" value="4"' in edited

    gone = admin.submit(f"{page}/limits", step="remove", version=hidden(edited)["version"])
    assert "No limits" in gone.text and control(stack, account, "GET", "/limits")["status"] == 404


def test_a_limit_that_is_none_is_explained_and_what_was_typed_stays(admin, page):
    refused = admin.submit(f"{page}/limits", max_open_orders="many", max_notional="-5")

    assert refused.status_code == 422
    assert "max open orders:" in refused.text and "max notional:" in refused.text
    assert 'value="many"' in refused.text and 'value="-5"' in refused.text


def test_a_change_that_somebody_else_overtook_is_not_made(stack, admin, page, account):
    control(stack, account, "PUT", "/symbols/OVER", {"manually_disabled": False})
    control(stack, account, "PUT", "/symbols/OVER", {"manually_disabled": False, "manual_reason": "mine"})
    late = admin.submit(f"{page}/symbols/OVER", step="disable", reason="late", version="1")

    assert late.status_code == 412 and "Somebody else changed this meanwhile" in late.text
    assert control(stack, account, "GET", "/symbols/OVER")["manual_reason"] == "mine"


def test_a_symbol_is_switched_off_with_a_reason_and_on_again(stack, admin, page, account):
    off = admin.submit(f"{page}/symbols/tsla", step="disable", reason=XSS)
    assert html.escape(XSS, quote=True).replace("&#x27;", "&#39;") in off.text and "<img" not in off.text
    assert submit(stack, account, "TSLA")["reasons"][0]["code"] == "SYMBOL_DISABLED"
    listed = eventually(lambda: (shown := admin.get(page)) and "SYMBOL_DISABLED" in shown.text and shown)
    assert "<img" not in listed.text and "Enable TSLA" in listed.text

    version = control(stack, account, "GET", "/symbols/TSLA")["version"]
    on = admin.submit(f"{page}/symbols/TSLA", step="enable", back="risk", version=str(version))
    assert urlsplit(on.url).path == page and "Enable TSLA" not in on.text
    admin.submit(f"{page}/symbols/TSLA", step="remove_switch")
    assert control(stack, account, "GET", "/symbols/TSLA")["status"] == 404


def test_a_window_is_drawn_in_the_zone_of_the_account_and_changed(stack, admin, page, account):
    shown = admin.submit(f"{page}/symbols/BTC/USD", step="window", start="22:00", end="04:30:00", stale="1.5")
    stored = control(stack, account, "GET", "/symbols/BTC%2FUSD/time")
    assert (stored["trading_start"], stored["trading_end"], stored["stale_order_millis"]) == (
        "22:00:00", "04:30:00", 1500,
    )  # fmt: skip
    assert '<rect class="open" x="0" width="270"' in shown.text and 'x="1320" width="120"' in shown.text
    assert "America/New_York" in shown.text and 'name="stale"' in shown.text and 'value="1.5"' in shown.text

    half = admin.submit(f"{page}/symbols/BTC/USD", step="window", start="", end="04:30:00", stale="")
    assert 'From <span class="figure">00:00</span>' in half.text
    assert (
        "must not be empty" in admin.submit(f"{page}/symbols/BTC/USD", step="window", start="04:30", end="04:30").text
    )
    admin.submit(f"{page}/symbols/BTC/USD", step="remove_window")
    assert control(stack, account, "GET", "/symbols/BTC%2FUSD/time")["status"] == 404


def test_limits_of_a_symbol_count_its_own_orders(stack, admin, page, account):
    submit(stack, account, "QQQ")
    shown = admin.submit(f"{page}/symbols/QQQ", step="limits", max_open_orders="2", max_position_quantity="14")

    assert shown.text.count('aria-label="50 % used"') == 2
    assert '<td class="number wide">2</td>' in admin.get(page).text
    admin.submit(f"{page}/symbols/QQQ", step="remove_limits")
    assert control(stack, account, "GET", "/symbols/QQQ/limits")["status"] == 404


def test_refusals_are_grouped_by_reason_and_listed_by_it(stack, admin, page, account):
    control(stack, account, "PUT", "/symbols/GME", {"manually_disabled": True})
    for _ in range(3):
        submit(stack, account, "GME")
    grouped = r"refusals\?code=SYMBOL_DISABLED\">SYMBOL_DISABLED</a> <span class=\"figure\">(\d+)<"
    eventually(lambda: any(int(count) >= 3 for count in re.findall(grouped, admin.get(page).text)))

    listed = admin.get(f"{page}/refusals?code=SYMBOL_DISABLED&symbol=gme")
    assert listed.text.count('symbols/GME">GME</a>  BUY 7 Limit 1') == 3
    assert "No refusal matches" in admin.get(f"{page}/refusals?symbol=NONE").text
    assert admin.get(f"{page}/refusals?code=NOTHING").status_code == 400


def test_changes_are_listed_with_who_made_them(stack, signed_in, page, account):
    control(stack, account, "PUT", "/symbols/HIST", {"manually_disabled": True, "manual_reason": "first"})
    control(stack, account, "DELETE", "/symbols/HIST")
    rows = signed_in("reader").get(f"{page}/history?symbol=hist").text

    assert rows.index("removed") < rows.index("manually disabled yes, manual reason first")
    assert "Nothing was changed of NONE" in signed_in("reader").get(f"{page}/history?symbol=NONE").text


def test_a_reader_sees_everything_and_changes_nothing(stack, signed_in, page, account):
    reader = signed_in("reader")
    for path in (page, f"{page}/limits", f"{page}/symbols/AAPL"):
        shown = reader.get(path)
        assert shown.status_code == 200 and "Admins of" in shown.text and 'class="danger"' not in shown.text

    before = control(stack, account, "GET", "/history")["data"][0]
    changes = (
        (page, {"state": "HALTED"}), (page, {"state": "CANCEL"}), (f"{page}/limits", {"max_open_orders": "1"}),
        (f"{page}/symbols/AAPL", {"step": "disable"}), (f"{page}/symbols/AAPL", {"step": "window", "start": "01:00"}),
    )  # fmt: skip
    for path, form in changes:
        assert reader.submit(path, **form).status_code == 403
    assert control(stack, account, "GET", "/history")["data"][0] == before


def test_a_live_account_asks_again_before_a_control_changes(stack, admin):
    live = stack.account(environment="live")
    page = f"/console/accounts/{live}/risk"
    changes = {
        "Halt and cancel": (page, {"state": "CANCEL"}),
        "Halt on": (page, {"state": "HALTED"}),
        "Set limits of the account: max open orders 1 on": (f"{page}/limits", {"max_open_orders": "1"}),
        "Disable TSLA on": (f"{page}/symbols/TSLA", {"step": "disable"}),
        "Set the trading window of TSLA: from 09:00 to 24:00, no order is ever stale on": (
            f"{page}/symbols/TSLA",
            {"step": "window", "start": "09:00"},
        ),
    }
    before = control(stack, live, "GET", "/history")["data"][:1]
    for words, (path, form) in changes.items():
        question = admin.submit(path, **form)
        assert "This account is live" in question.text and f">{words}" in question.text
        assert "live account</button>" in question.text
    assert control(stack, live, "GET", "/history")["data"][:1] == before

    admin.submit(f"{page}/symbols/LIVE", step="disable", reason="twice", confirmed="yes")
    assert control(stack, live, "GET", "/symbols/LIVE")["manual_reason"] == "twice"
    control(stack, live, "DELETE", "/symbols/LIVE")


def test_the_question_about_limits_names_those_that_are_removed(stack, admin):
    live = stack.account(environment="live")
    page, limits = f"/console/accounts/{live}/risk", {"max_quantity": "5", "max_open_orders": 9}
    for path, form in (("/limits", {}), ("/symbols/MANY/limits", {"step": "limits"})):
        control(stack, live, "PUT", path, limits)
        question = admin.submit(f"{page}{path.removesuffix('/limits') or path}", max_quantity="6", **form)
        assert "max quantity 6; remove max open orders on live account</button>" in question.text
        control(stack, live, "DELETE", path)


def test_without_the_entitlement_a_page_says_what_is_missing_and_lists_refusals(stack, signed_in):
    own = signed_in("stranger").get(f"/console/accounts/{stack.account('globex')}/risk")

    assert own.status_code == 200 and "controls_premium" in own.text and "Nothing was refused" in own.text
    assert signed_in("stranger").get(f"/console/accounts/{stack.account('globex')}/risk/limits").status_code == 403
    assert '<button name="state" value="ACTIVE">' in own.text and 'value="HALTED"' not in own.text


@pytest.mark.parametrize("path", ["risk", "risk/limits", "risk/symbols/AAPL", "risk/refusals", "risk/history"])
def test_controls_of_others_look_like_what_does_not_exist(signed_in, account, path):
    stranger = signed_in("stranger")
    foreign = stranger.get(f"/console/accounts/{account}/{path}")
    nothing = stranger.get(f"/console/accounts/00000000-0000-4000-8000-000000000000/{path}")

    assert foreign.status_code == nothing.status_code == 404


@pytest.mark.parametrize("path", ["risk", "risk/limits", "risk/symbols/AAPL"])
def test_forms_about_controls_need_the_token_of_the_session(admin, account, path):
    target, form = f"/console/accounts/{account}/{path}", {"state": "HALTED", "step": "disable", "max_quantity": "1"}
    token = hidden(admin.get("/console").text)["csrf"]

    assert admin.post(target, form).status_code == 403
    assert admin.post(target, {**form, "csrf": token}, Origin="https://evil.example").status_code == 403


@pytest.mark.parametrize("symbol", ["..", "..%2F..", "%20", "A" * 33, "<b>", "?", "A%00"])
def test_what_is_no_symbol_is_refused(admin, page, symbol):
    assert admin.get(f"{page}/symbols?symbol={symbol}").status_code in (400, 422)


def test_an_unknown_state_or_step_is_refused(admin, page):
    assert admin.submit(page, state="CLOSED").status_code == 422
    assert admin.submit(f"{page}/symbols/AAPL", step="nothing").status_code == 400


@pytest.mark.parametrize("operation", ["nothing", "00000000-0000-4000-8000-000000000000"])
def test_a_link_cannot_make_a_page_say_that_orders_are_canceled(stack, admin, page, account, operation):
    control(stack, account, "PUT", "", {"trading_state": "ACTIVE"})
    shown = admin.get(f"{page}?operation={operation}")

    assert shown.status_code == 200 and "Canceling" not in shown.text


def test_an_account_that_is_none_has_no_symbols(admin):
    assert admin.get("/console/accounts/x/risk/symbols?symbol=A").status_code == 404
