"""Statements in Chromium: a good one is verified, an altered one is not, and the line is named."""

import base64
import re
from pathlib import Path

import pytest
import requests
from administration_pages import audit, check_page
from browser_pages import browser, sign_in, watched
from people import TIMEOUT_S
from playwright.sync_api import expect

from tip.statement_file import NotVerified, verify
from tip_testing.waiting import eventually

__all__ = ["browser"]
LACK_ED25519 = """
const real = crypto.subtle.importKey.bind(crypto.subtle);
crypto.subtle.importKey = (form, key, algorithm, ...rest) => algorithm.name === "Ed25519"
  ? Promise.reject(new DOMException("Unrecognized name.", "NotSupportedError")) : real(form, key, algorithm, ...rest);
"""


@pytest.fixture(scope="module")
def office(browser, stack):
    context = sign_in(browser, stack.base, stack.logins["reader"])
    yield context
    context.close()


@pytest.fixture(scope="module")
def statement(stack, tmp_path_factory):
    """A statement of the paper account, in a file."""
    spec = {"Limit": {"quantity": "3", "limit_price": "1"}}
    payload = {"symbol": "AAPL", "order_side": "BUY", "spec": spec, "tags": ["audit"]}
    path, command = f"/v1/accounts/{stack.account()}", {"type": "CREATE", "payload": payload}
    for _ in range(2):
        stack.call("POST", f"{path}/intents", {"command": command}, key=stack.key())
    file = tmp_path_factory.mktemp("statement") / "statement.jsonl"
    eventually(lambda: len(saved(stack, path, file)) > 3)
    return file


def saved(stack, path, file):
    """The lines of the statement, which are few until the log is signed."""
    answer = requests.get(f"{stack.base}{path}/statement", headers={"x-api-key": stack.key()}, timeout=TIMEOUT_S)
    file.write_bytes(answer.content)
    return answer.content.splitlines()


def verdict(page, file):
    page.set_input_files("#file", file)
    page.get_by_role("button", name="Verify the file").click()
    found = page.locator("[data-verdict]:not([data-verdict=verifying])")
    expect(found).to_be_visible()
    return found.inner_text()


def test_a_statement_is_verified_in_the_browser(office, stack, statement):
    page, errors = watched(office)
    office.add_cookies([{"name": "tip_console_theme", "value": "dark", "url": stack.base, "httpOnly": True}])
    page.goto(audit(stack))
    page.get_by_role("button", name="Verify", exact=True).click()
    expect(page.locator("[data-verdict=verified]")).to_contain_text("No entry was altered")
    check_page(page, "audit-verified", "dark")
    office.clear_cookies(name="tip_console_theme")

    assert verdict(page, statement).startswith("Verified")
    assert errors == []
    page.close()


def with_another_signature(line):
    return re.sub(rb'("signature":")(..)', lambda found: found[1] + b"%02x" % (int(found[2], 16) ^ 1), line)


def renamed(line, field):
    """The line with another id in the field."""
    return re.sub(rb'"%s":"....' % field, rb'"%s":"0000' % field, line)


NO_STATEMENT = "Line 1: this is not the first line of a statement"
ALTERATIONS = {
    "content": (lambda a: [a[0], a[1].replace(b'"id"', b'"iD"', 1), *a[2:]], "Line 2: the entry was altered"),
    "gap": (lambda a: [a[0], *a[2:]], "Line 2: entry 1 is missing"),
    "order": (lambda a: [a[0], a[2], a[1], *a[3:]], "Line 2: entry 1 is missing"),
    "cut": (lambda a: a[:-1], "the file ends without a signed head"),
    "tail": (lambda a: [*a, b"\n"], "something follows the signed head"),
    "end": (lambda a: [*a[:-1], a[-1].rstrip(b"\n")], "this is not a signed head"),
    "signature": (lambda a: [*a[:-1], with_another_signature(a[-1])], "the signature does not hold"),
    "key": (lambda a: [*a[:-1], renamed(a[-1], b"key_id")], "a key that is not among the given ones"),
    "account": (lambda a: [renamed(a[0], b"account_id"), *a[1:]], "Line 2: the entry is of another account"),
    "period": (
        lambda a: [a[0].replace(b'"from":null', b'"from":"2026-01-05T00:00:00.000000Z"'), *a[1:]],
        "were altered",
    ),
    "empty": (lambda _: [], NO_STATEMENT),
    "page": (lambda _: [b"<html>"], NO_STATEMENT),
}


def test_whatever_is_altered_is_not_verified_and_the_line_is_named(office, stack, statement, tmp_path):
    page, errors = watched(office)
    page.goto(audit(stack))
    lines = statement.read_bytes().splitlines(keepends=True)
    assert len(lines) > 3
    for name, (alter, reason) in ALTERATIONS.items():
        altered = tmp_path / f"{name}.jsonl"
        altered.write_bytes(b"".join(alter(lines)))
        shown = verdict(page, altered)
        assert shown.startswith("Not verified") and reason in shown, (name, shown)
    check_page(page, "audit-not-verified", "light")
    assert errors == []
    page.close()


def test_the_browser_and_tip_verify_agree(office, stack, statement, tmp_path):
    """Two programs that share no code find the same fault in the same line."""
    page, _ = watched(office)
    page.goto(audit(stack))
    keys = {key["kid"]: key["x"] for key in stack.call("GET", "/.well-known/log-jwks.json")["keys"]}
    lines = statement.read_bytes().splitlines(keepends=True)
    for name, (alter, _) in ALTERATIONS.items():
        altered = tmp_path / f"{name}.jsonl"
        altered.write_bytes(b"".join(alter(lines)))
        with pytest.raises(NotVerified) as refusal:
            verify(alter(lines), {key_id: unpadded(x) for key_id, x in keys.items()})
        assert str(refusal.value).replace("`", "").lower() in verdict(page, altered).lower()
    page.close()


def unpadded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_keys_that_were_saved_before_can_be_used(office, stack, statement, tmp_path):
    page, _ = watched(office)
    page.goto(audit(stack))
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    page.set_input_files("#keys", keys)

    assert "a key that is not among" in verdict(page, statement)
    page.close()


def requested(page):
    page.get_by_role("button", name="Verify", exact=True).click()
    found = page.locator("[data-verdict]:not([data-verdict=verifying])")
    expect(found).to_be_visible()
    return found.inner_text()


def test_without_a_statement_or_keys_there_is_no_verdict(office, stack, statement):
    page = office.new_page()
    page.goto(audit(stack))
    page.get_by_role("button", name="Verify the file").click()
    expect(page.locator("[data-verdict='cannot be verified here']")).to_contain_text("Choose a statement first.")

    for status in (401, 429, 503):
        page.route("**/log-jwks.json", lambda route, *, status=status: route.fulfill(status=status, json={}))
        assert verdict(page, statement).startswith("Cannot be verified here")
    page.route("**/log-jwks.json", lambda route: route.fulfill(json={"code": "no key set"}))
    assert "The keys are not a JWK set." in verdict(page, statement)
    page.unroute_all()

    answers = (lambda route: route.fulfill(status=409, json={"detail": "not signed yet"}), lambda route: route.abort())
    for answer in answers:
        page.route("**/statement?*", answer)
        assert requested(page).startswith("Cannot be verified here")
    page.close()


def test_a_statement_that_was_not_requested_is_not_verified(office, stack, statement):
    page = office.new_page()
    page.goto(audit(stack))
    page.route("**/statement?*", lambda route: route.fulfill(path=statement))
    assert requested(page).startswith("Verified")

    page.fill("[name=from]", "2026-01-05")
    assert "its from is not the one that was requested" in requested(page)
    page.fill("[name=from]", "")
    page.fill("[name=to]", "2099-01-05")
    assert "its to is not the one that was requested" in requested(page)
    page.fill("[name=to]", "")
    page.evaluate("document.getElementById('result').dataset.account = 'another'")
    assert "its account is not the one that was requested" in requested(page)
    page.close()


def test_a_browser_without_ed25519_says_how_to_verify(office, stack, statement):
    page = office.new_page()
    page.add_init_script(LACK_ED25519)
    page.goto(audit(stack))
    shown = verdict(page, statement)

    assert shown.startswith("Cannot be verified here") and "tip verify FILE --keys keys.json" in shown
    page.close()


def test_a_statement_is_downloaded_as_a_file(office, stack, statement):
    page = office.new_page()
    page.goto(audit(stack))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()

    assert download.value.suggested_filename == f"statement-{stack.account()}.jsonl"
    assert Path(download.value.path()).read_bytes().startswith(b'{"statement":1')
    page.close()
