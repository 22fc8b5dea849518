"""Overview: the last hour of an account, as far as the API has it."""

import re

import pytest
import requests
from risk_desk import control, new_account, submit

from tip_testing.waiting import eventually


@pytest.fixture(scope="module")
def account(stack):
    """One with a fill and a refusal."""
    account = new_account(stack, "overview")
    submit(stack, account, "MSFT", {"Market": {"quantity": "2"}})
    submit(stack, account)
    control(stack, account, "PUT", "/symbols/GME", {"manually_disabled": True})
    submit(stack, account, "GME")
    return account


def test_orders_fills_and_refusals_are_counted_and_drawn(signed_in, account):
    reader = signed_in("reader")
    page = f"/console/accounts/{account}/overview"
    shown = eventually(lambda: (found := reader.get(page).text) and "1 filled" in found and found)

    assert '<dt>Orders</dt><dd class="figure">2<' in shown and '<dt>Filled</dt><dd class="figure">1<' in shown
    assert "Orders a minute in the last hour, at most" in shown and 'class="soft"' in shown
    eventually(lambda: '<dt>Refusals</dt><dd class="figure">1<' in reader.get(page).text)
    assert '<dt>Unknown outcomes</dt><dd class="figure">0<' in shown


def test_an_account_without_orders_says_so(stack, signed_in):
    shown = signed_in("admin").get(f"/console/accounts/{new_account(stack, 'quiet')}/overview").text

    for hint in ("No order in this hour", "No order was filled", "Nothing was refused", "Place an order"):
        assert hint in shown


def test_open_streams_of_the_account_are_counted(stack, signed_in):
    account = new_account(stack, "followed")
    reader, page = signed_in("reader"), f"/console/accounts/{account}/overview"
    assert streams_of(reader.get(page).text) == (0, "0 gRPC, 0 server-sent")

    address = f"{stack.base}/v1/accounts/{account}/events"
    with requests.get(address, headers={"x-api-key": stack.key()}, stream=True, timeout=60):
        eventually(lambda: streams_of(reader.get(page).text) == (1, "0 gRPC, 1 server-sent"))
    eventually(lambda: streams_of(reader.get(page).text)[0] == 0)


def streams_of(page):
    found = re.search(r'<dt>Open streams</dt><dd class="figure">(\d+)<span class="note">([^<]+)<', page)
    return int(found[1]), found[2]


def test_the_outbox_is_for_whoever_runs_the_platform(signed_in, account):
    page = f"/console/accounts/{account}/overview"

    assert "Oldest in the outbox" in signed_in("admin").get(page).text
    assert "Oldest in the outbox" not in signed_in("reader").get(page).text


def test_the_overview_of_others_looks_like_what_does_not_exist(signed_in, account):
    stranger = signed_in("stranger")

    assert stranger.get(f"/console/accounts/{account}/overview").status_code == 404
    assert stranger.get("/console/accounts/00000000-0000-4000-8000-000000000000/overview").status_code == 404
