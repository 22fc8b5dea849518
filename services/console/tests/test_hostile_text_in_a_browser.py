"""Every free text that somebody else may have written is shown as text, and nothing of it runs."""

import json
import os
from urllib.parse import quote
from uuid import uuid4

import pytest
from browser_pages import browser, sign_in, watched
from platform_start import run_script
from risk_desk import control, new_account, submit

from tip_testing.waiting import eventually

__all__ = ["browser"]
MARKUP = "<img src=x onerror=document.title='broken'>"
NO_SPACE = "<img/src=x/onerror=document.title='broken'>"
ALL_TEXT = "document.body.textContent + [...document.querySelectorAll('input')].map((input) => input.value)"
REWRITE = """
import json, sys
import psycopg2
from tip_local.settings import Settings
from tip_local.stack import running_stack
words, intent = json.load(sys.stdin)
with psycopg2.connect(running_stack(Settings.from_env()).admin_url) as connection, connection.cursor() as cursor:
    cursor.execute("SET session_replication_role = replica")
    change = "payload = payload || jsonb_build_object('reason', %s::text)"
    cursor.execute(f"UPDATE intents.account_event SET {change} WHERE intent_id = %s", (words, intent))
"""


def hostile(field, markup=MARKUP):
    """Would run if it were markup, inside an attribute as well; `field` finds it again."""
    return f"\"'>{markup}{field}-{uuid4().hex[:6]}"


class Office:
    """An account, its people and keys, everything with a hostile name; `shown` is where each text has to be seen."""

    def __init__(self, stack):
        self.stack, self.shown = stack, {}
        self.account = new_account(stack, "hostile")
        self.path = f"/console/accounts/{self.account}"
        self.organization = f"/v1/organizations/{stack.local['organizations']['acme']['id']}"
        self.name_things()
        self.name_people()
        self.trade()
        self.disable_another()

    def text(self, field, *paths, markup=MARKUP):
        made = hostile(field, markup)
        self.shown[made] = paths
        return made

    def call(self, method, path, body=None, key=""):
        answer = self.stack.call(method, path, body, key=key)
        assert not (answer and "code" in answer and "detail" in answer), answer
        return answer

    def name_things(self):
        everywhere = ("/console", f"{self.path}/orders", f"{self.path}/settings", f"{self.path}/risk")
        self.call("PATCH", f"/v1/accounts/{self.account}", {"name": self.text("account", *everywhere)})
        secret = {"key_id": "AKHOSTILE", "secret_key": "hush"}
        label = self.text("credential", f"{self.path}/settings")
        self.call("POST", f"/v1/accounts/{self.account}/credentials", {"label": label, "secret": secret})
        name = self.text("key", "/console/keys", "/console/audit-log")
        body = {"name": name, "environment": "paper", "permissions": ["intent:edit", "intent:read"]}
        self.key = self.call("POST", "/v1/api-keys", body)
        self.shown[name] += (f"/console/keys/{self.key['id']}",)

    def name_people(self):
        member = self.text("member", "/console/people", "/console/audit-log", markup=NO_SPACE)
        self.call("PUT", f"{self.organization}/memberships/{quote(member, safe='')}", {"role": "read_only"})
        invited = self.text("invited", "/console/people", markup=NO_SPACE) + "@acme.example"
        self.shown[invited] = ("/console/people",)
        self.call("POST", f"{self.organization}/invitations", {"subject": invited, "role": "member"})

    def trade(self):
        """Orders, one of which the broker rejects in hostile words; and a halt."""
        order = submit(
            self.stack, self.account, tags=[tag := "<img src=x onerror=alert(1)>tag"], client_id=(own := hostile("own"))
        )
        assert "intent_id" in order, order
        self.order = f"{self.path}/orders/{order['intent_id']}"
        self.shown |= {tag: (f"{self.path}/orders", self.order), own: (self.order,)}
        self.reject()
        reason = self.text("halt", f"{self.path}/risk", f"{self.path}/risk/history")
        control(self.stack, self.account, "PUT", "", {"trading_state": "HALTED", "reason": reason})
        reason = self.text("symbol", f"{self.path}/risk/symbols/TSLA", f"{self.path}/risk")
        control(self.stack, self.account, "PUT", "/symbols/TSLA", {"manually_disabled": True, "manual_reason": reason})

    def reject(self):
        """An order that the broker rejects; its words are put into the log, where no adapter of ours cut them."""
        intent = submit(self.stack, self.account, "SIM.REJECT")["intent_id"]
        path = f"/v1/accounts/{self.account}/intents/{intent}"
        eventually(lambda: self.call("GET", path)["state"]["status"] == "REJECTED")
        words = self.text("broker", f"{self.path}/orders/{intent}")
        run_script(REWRITE, {**os.environ, "TIP_HOME": str(self.stack.home)}, json.dumps([words, intent]))

    def disable_another(self):
        other = new_account(self.stack, "disabled")
        reason = self.text("disabled", "/console", f"/console/accounts/{other}/settings")
        self.call("POST", f"/v1/accounts/{other}/disable", {"reason": reason})


@pytest.fixture(scope="module")
def office(stack):
    return Office(stack)


def test_no_free_text_runs_and_each_is_shown_as_it_is(browser, stack, office):
    context = sign_in(browser, stack.base, stack.logins["admin"])
    page, errors = watched(context)
    for path in sorted({path for paths in office.shown.values() for path in paths}):
        page.goto(path)
        page.wait_for_timeout(200)
        assert page.title() != "broken" and page.locator("img").count() == 0, path
        shown = page.evaluate(
            "document.documentElement.innerText + [...document.querySelectorAll('input')].map((i) => i.value)"
        )
        missing = [text for text, paths in office.shown.items() if path in paths and text not in shown]
        assert missing == [], path
    assert errors == []
    context.close()
