"""Orders and tickets: pages show what the API says, and do what it allows."""

import html
import re
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from people import hidden

from console import decisions, orders
from tip_testing.waiting import eventually

RUN = uuid4().hex[:8]
"""In what must be new on a platform that earlier runs have used."""
XSS = '<script>alert("x")</script>'


@pytest.fixture(scope="module")
def account(stack):
    return f"/console/accounts/{stack.account()}"


@pytest.fixture(scope="module")
def trader(stack, signed_in, account):
    """Somebody who has shown a key."""
    visitor = signed_in("trader")
    visitor.submit(f"{account}/key", key=stack.key())
    return visitor


def order(**changes):
    return {"symbol": "AAPL", "order_side": "BUY", "kind": "Limit", "quantity": "3", "limit_price": "1", **changes}


def place(visitor, account, **changes):
    """The page of an order that was placed."""
    form = {"step": "place", "time_in_force": "DAY", "once": changes.get("once", ""), **order(**changes)}
    return visitor.submit(f"{account}/ticket", **form)


def test_an_order_is_checked_then_placed_then_seen(trader, account):
    checked = trader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order(tags="desk, story-1"))
    assert "Allowed" in checked.text and "Place BUY 3 AAPL Limit 1" in checked.text
    assert "Account is enabled" in checked.text

    page = place(trader, account, tags="desk, story-1")
    assert re.search(r"/orders/[0-9a-f-]{36}$", page.url)
    assert "desk, story-1" in page.text and "<strong>create</strong>" in page.text
    listed = trader.get(f"{account}/orders?tag=story-1&status=open&symbol=aapl").text
    assert urlsplit(page.url).path in listed


def test_a_check_writes_nothing(trader, account):
    before = trader.get(f"{account}/orders?tag=never").text.count("data-intent=")
    trader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order(tags="never"))

    assert trader.get(f"{account}/orders?tag=never").text.count("data-intent=") == before == 0


def test_a_form_that_is_sent_twice_is_one_order(trader, account):
    first, second = (place(trader, account, once=f"pressed-twice-{RUN}", tags=f"twice-{RUN}") for _ in range(2))

    assert first.url == second.url
    assert trader.get(f"{account}/orders?tag=twice-{RUN}").text.count(" data-intent=") == 1


def test_an_order_is_replaced_and_canceled(trader, account):
    path = urlsplit(place(trader, account).url).path
    eventually(lambda: "accepted" in trader.get(path).text)
    trader.submit(f"{path}/replace", quantity="5", limit_price="1.1", once=f"r1-{RUN}")
    eventually(lambda: "BUY</span> 5 AAPL Limit 1.1" in trader.get(path).text)
    trader.submit(f"{path}/cancel", once=f"c1-{RUN}")
    eventually(lambda: 'class="state ended">canceled' in trader.get(path).text)

    over = trader.submit(f"{path}/cancel", once=f"c2-{RUN}")
    assert over.status_code == 409 and 'role="alert"' in over.text


def test_what_controls_refuse_is_explained(stack, trader, account):
    symbol = f"/v1/controls/accounts/{stack.account()}/symbols/XSSA"
    stack.call("PUT", symbol, {"manually_disabled": True, "manual_reason": XSS})
    page = trader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order(symbol="XSSA"))

    assert page.status_code == 422
    assert "Symbol is switched on" in page.text and "symbol disabled" in page.text
    assert html.escape(XSS, quote=False) in page.text.replace("&#34;", '"') and XSS not in page.text


def test_what_is_no_order_is_said_at_its_field(trader, account):
    page = trader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order(quantity="many"))

    assert page.status_code == 422 and "quantity" in page.text and 'value="many"' in page.text


def test_text_of_others_is_shown_as_text(trader, account):
    page = place(trader, account, tags="<b>bold</b>", client_id="a&b<i>")
    if page.status_code == 422:  # the API takes no such tag or id: then nobody can show it
        page = trader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order(tags=XSS, client_id=XSS))
    assert "<b>bold" not in page.text and XSS not in page.text and "&lt;" in page.text


def test_without_a_key_an_order_can_be_checked_and_not_placed(signed_in, account):
    reader = signed_in("reader")
    checked = reader.submit(f"{account}/ticket", step="check", time_in_force="DAY", **order())
    assert "Allowed" in checked.text and 'value="place"' not in checked.text

    assert place(reader, account).status_code == 403


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("acme", "live"), "for live accounts"),
        (("globex", "paper"), "another organization"),
        (("acme", "paper_read_only"), "lacks the permission"),
        (None, "does not take this key"),
    ],
)
def test_a_key_that_is_of_no_use_here_is_not_kept(stack, signed_in, account, key, said):
    visitor = signed_in("trader")
    page = visitor.submit(f"{account}/key", key=stack.key(*key) if key else "tip_paper_invented")

    assert said in page.text
    assert not stack.sessions().find(visitor.cookies.cookies.get("tip_console")).keys


def test_a_key_is_in_no_page_and_can_be_forgotten(stack, signed_in, account):
    visitor = signed_in("trader")
    page = visitor.submit(f"{account}/key", key=stack.key())
    assert "is held for this session" in page.text and stack.key() not in page.text

    assert "Use this key" in visitor.submit(f"{account}/key", forget="yes").text


def test_a_live_account_asks_again_and_names_what_will_be_done(stack, signed_in):
    visitor, live = signed_in("admin"), f"/console/accounts/{stack.account(environment='live')}"
    visitor.submit(f"{live}/key", key=stack.key(environment="live"))
    question = place(visitor, live, once=f"live-1-{RUN}", tags=f"question-{RUN}")
    assert "Place: BUY 3 AAPL Limit 1 on live account</button>" in question.text
    assert 'class="top is-live"' in question.text and "LIVE" in question.text
    assert visitor.get(f"{live}/orders?tag=question-{RUN}").text.count(" data-intent=") == 0

    form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', question.text)) | {"confirmed": "yes"}
    placed = visitor.follow(visitor.post(f"{live}/ticket", form))
    path = urlsplit(placed.url).path
    assert "Cancel: BUY 3 AAPL Limit 1 on live account" in visitor.submit(f"{path}/cancel", once=f"live-2-{RUN}").text
    visitor.submit(f"{path}/cancel", once=f"live-2-{RUN}", confirmed="yes")
    eventually(lambda: 'class="state ended">canceled' in visitor.get(path).text)


@pytest.mark.parametrize("page", ["orders", "ticket", "positions"])
def test_what_belongs_to_others_looks_like_what_does_not_exist(stack, signed_in, page):
    stranger = signed_in("stranger")
    foreign = stranger.get(f"/console/accounts/{stack.account()}/{page}")
    nothing = stranger.get(f"/console/accounts/00000000-0000-4000-8000-000000000000/{page}")

    assert foreign.status_code == nothing.status_code == 404
    assert "paper account" not in foreign.text


def test_forms_of_orders_need_the_token_of_the_session(trader, account):
    path = urlsplit(place(trader, account).url).path
    for target in (f"{account}/ticket", f"{account}/key", f"{account}/stream", f"{path}/cancel", f"{path}/replace"):
        assert trader.post(target, order(step="place")).status_code == 403
    assert (
        trader.post(f"{path}/cancel", {"csrf": hidden(trader.get(path).text)["csrf"]}, Origin="null").status_code == 403
    )


def test_a_kind_of_order_has_the_prices_that_it_names():
    draft = orders.Draft("aapl", "SELL", "StopLimit", "5", limit_price="9", stop_price="10", tags="a, b,")

    assert draft.command == {
        "type": "CREATE",
        "payload": {
            "symbol": "AAPL",
            "order_side": "SELL",
            "spec": {"StopLimit": {"quantity": "5", "stop_price": "10", "limit_price": "9", "time_in_force": "DAY"}},
            "tags": ["a", "b"],
        },
    }
    assert draft.words == "SELL 5 AAPL StopLimit 10 9"


def test_refusals_come_first_and_values_stand_beside_their_control():
    checks = [
        {"control": "account", "outcome": "PASSED"},
        {"control": "account_limits.max_quantity", "outcome": "REFUSED"},
    ]
    reasons = [{"control": "account_limits.max_quantity", "code": "QUANTITY_ABOVE_LIMIT", "message": "too many"}]
    first, second = decisions.explain(checks, reasons, {"account_limits": {"max_quantity": "5"}})

    assert (first.title, first.outcome, first.value) == ("Max quantity of the account", "QUANTITY_ABOVE_LIMIT", "5")
    assert second.is_passed
