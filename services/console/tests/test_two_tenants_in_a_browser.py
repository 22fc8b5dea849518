"""Two organizations at once, each in a browser of its own: neither is ever sent anything of the other."""

from uuid import uuid4

import pytest
from browser_pages import browser, sign_in, watched
from playwright.sync_api import expect

__all__ = ["browser"]
LOGINS = {"acme": "admin", "globex": "stranger"}
PAGES = ("overview", "orders", "ticket", "risk", "risk/refusals", "risk/history", "positions", "settings", "audit")
OTHERS = ("/console", "/console/people", "/console/keys", "/console/audit-log", "/console/connect")
KEEP_EVENTS = """(() => {
  const Real = window.EventSource;
  window.received = [];
  window.EventSource = class extends Real {
    addEventListener(type, listener) {
      super.addEventListener(type, (message) => {
        window.received.push(message.data);
        listener(message);
      });
    }
  };
})();"""
"""What came by the stream, whatever the page made of it."""


class Tenant:
    """Somebody at the console, and all that is only theirs."""

    def __init__(self, browser, stack, organization):
        self.stack, self.organization = stack, organization
        self.context = sign_in(browser, stack.base, stack.logins[LOGINS[organization]])
        self.context.add_init_script(KEEP_EVENTS)
        self.page, self.errors = watched(self.context)
        self.account = stack.account(organization)
        self.key_name = f"key of {organization} {uuid4().hex[:8]}"
        body = {"name": self.key_name, "environment": "paper", "permissions": ["intent:read"]}
        key = stack.call("POST", "/v1/api-keys", body, organization=organization)
        self.own = {
            stack.local["organizations"][organization]["id"], self.account, stack.account(organization, "live"),
            stack.logins[LOGINS[organization]]["email"], self.key_name, key["id"],
        }  # fmt: skip

    def submit(self):
        spec = {"Limit": {"quantity": "7", "limit_price": "1"}}
        payload = {"symbol": "AAPL", "order_side": "BUY", "spec": spec, "tags": [f"tag-of-{self.organization}"]}
        path, body = f"/v1/accounts/{self.account}/intents", {"command": {"type": "CREATE", "payload": payload}}
        intent = self.stack.call("POST", path, body, key=self.stack.key(self.organization))["intent_id"]
        self.own.add(intent)
        return intent

    def open_orders(self):
        self.page.goto(f"/console/accounts/{self.account}/orders")
        expect(self.page.locator("#stream")).to_have_attribute("data-state", "live")

    def everything(self):
        """All that this browser has been sent, by pages and by the stream."""
        seen = [self.page.content(), *self.page.evaluate("window.received")]
        for path in (*OTHERS, *(f"/console/accounts/{self.account}/{name}" for name in PAGES)):
            seen.append(self.context.request.get(path).text())
        return "\n".join(seen)


@pytest.fixture
def tenants(browser, stack):
    made = {name: Tenant(browser, stack, name) for name in LOGINS}
    yield made
    for tenant in made.values():
        tenant.context.close()


def test_neither_of_two_organizations_is_sent_anything_of_the_other(tenants):
    acme, globex = tenants["acme"], tenants["globex"]
    for tenant in tenants.values():
        tenant.open_orders()
    intents = [(tenant, tenant.submit()) for _ in range(5) for tenant in tenants.values()]
    for tenant, intent in intents:
        expect(tenant.page.locator(f"[data-intent='{intent}']")).to_contain_text("accepted")

    for tenant, other in ((acme, globex), (globex, acme)):
        everything = tenant.everything()
        assert [word for word in tenant.own if word not in everything] == []
        assert [word for word in other.own if word in everything] == []
        assert tenant.errors == []


def test_the_pages_of_another_organization_are_not_there(tenants):
    acme, globex = tenants["acme"], tenants["globex"]
    intent = acme.submit()
    paths = (*PAGES, f"orders/{intent}")
    for path in paths:
        answer = globex.context.request.get(f"/console/accounts/{acme.account}/{path}")
        assert answer.status == 404, path
        assert not any(word in answer.text() for word in acme.own - {acme.account, intent}), path
