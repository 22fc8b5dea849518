"""Objects made for the one request that is allowed to end them."""

import json
from contextlib import closing
from itertools import count

import psycopg2
from attack_cells import Cell, Prepared, prepared
from attack_rules import LIMITS, MANUAL, STATE, TIME
from attack_targets import Scenery
from attack_tenants import Builder, Headers, Tenant, bearer

_numbers = count(1)
_FAILED_ROW = """
    INSERT INTO accounts.outbox (event_id, event_type, payload, status, attempts, settled_at, last_error)
    SELECT id, 'account.updated', %s::jsonb || jsonb_build_object('event_id', id, 'occurred_at', now()),
           'failed', 10, now(), 'ValueError'
    FROM (SELECT gen_random_uuid() AS id) made RETURNING id
"""


class Fresh:
    def __init__(self, builder: Builder, scenery: Scenery) -> None:
        self._builder, self._scenery = builder, scenery

    def prepared(self, cell: Cell) -> Prepared:
        """The request of a cell; what an allowed one would end is made first."""
        values, headers = dict(cell.target.values), cell.caller.headers
        if cell.rule.fresh and min(cell.allowed) < 400 and not cell.target.foreign:
            made_values, made_headers = getattr(self, f"_{cell.rule.fresh}")(cell)
            values, headers = values | made_values, made_headers or headers
        return prepared(cell, values, headers)

    def _user(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        subject = self._added(cell.tenant, cell.caller.role or "member")
        token = self._builder.identity.user_token(subject, cell.tenant.external_id, cell.caller.role)
        return {}, bearer(token)

    def _subject(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        return {"subject": f"{cell.tenant.canary}-subject-{next(_numbers)}"}, ()

    def _member(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        return {"subject": self._added(cell.tenant, "member")}, ()

    def _added(self, tenant: Tenant, role: str) -> str:
        subject = f"{tenant.canary}-member-{next(_numbers)}"
        path = f"/v1/organizations/{tenant.id}/memberships/{subject}"
        self._builder.call("PUT", path, bearer(tenant.tokens["admin"]), {"role": role})
        return subject

    def _leaver(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        """A member who may go: whoever else acts in the attack is still needed."""
        return self._user(cell)

    def _invitation(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        path = f"/v1/organizations/{cell.tenant.id}/invitations"
        body = {"subject": f"{cell.tenant.canary}-guest-{next(_numbers)}", "role": "member"}
        return {"invitation_id": self._builder.call("POST", path, bearer(cell.tenant.tokens["admin"]), body)["id"]}, ()

    def _key(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        body = {"name": cell.tenant.canary, "environment": "paper", "permissions": ["intent:read"]}
        made = self._builder.call("POST", "/v1/api-keys", bearer(cell.tenant.tokens["admin"]), body)
        return {"key_id": made["id"]}, ()

    def _client(self, _cell: Cell) -> tuple[dict[str, str], Headers]:
        return {"client_id": self._builder.identity.service_account(("organization:write",)).client_id}, ()

    def _failed_row(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        """Not over the API, by which no row fails."""
        about = {"organization_id": cell.tenant.id, "account_id": cell.tenant.accounts["spare_paper"], "version": 1}
        payload = json.dumps(about | {"event_type": "account.updated"})
        with closing(psycopg2.connect(self._builder.platform.admin_url)) as database, database, database.cursor() as tx:
            tx.execute(_FAILED_ROW, (payload,))
            [row_id] = tx.fetchone() or ("0",)
        return {"row_id": str(row_id)}, ()

    def _entitlement(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        path = f"/v1/organizations/{cell.target.values['organization_id']}/entitlements/{cell.target.values['name']}"
        self._builder.call("PUT", path, bearer(self._builder.operator.token), {})
        return {}, ()

    def _control(self, cell: Cell) -> tuple[dict[str, str], Headers]:
        path = prepared(cell, cell.target.values, ()).path
        method, body = "PUT", STATE
        if path.endswith("/time"):
            method, body = "PATCH", TIME
        elif path.endswith("/limits"):
            body = LIMITS
        elif "/symbols/" in path:
            body = MANUAL
        self._builder.call(method, path, bearer(cell.tenant.tokens["admin"]), body(cell.tenant))
        return {}, ()
