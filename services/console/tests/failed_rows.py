"""Outbox rows that have failed, which the API makes none of."""

import json
from uuid import uuid4

from sqlalchemy import Engine, NullPool, create_engine, text

from chassis.db import with_driver

_FAIL = text("""
    INSERT INTO accounts.outbox (event_id, event_type, ordering_key, payload, status, attempts, settled_at, last_error)
    VALUES (:event_id, 'account.updated', :account_id,
            CAST(:payload AS jsonb) || jsonb_build_object('occurred_at', now()), 'failed', 10, now(), :error)
    RETURNING id
""")


def _engine(stack) -> Engine:
    return create_engine(with_driver(stack.admin_url()), poolclass=NullPool)


def fail_row(stack, error):
    """The number of a new row about an account, which this error has made fail."""
    about = {"organization_id": stack.local["organizations"]["acme"]["id"], "account_id": stack.account()}
    event_id = str(uuid4())
    payload = json.dumps({**about, "version": 1, "event_id": event_id, "event_type": "account.updated"})
    values = {"event_id": event_id, "account_id": about["account_id"], "payload": payload, "error": error}
    with _engine(stack).begin() as tx:
        return tx.execute(_FAIL, values).scalar_one()


def redriven_from(stack, row):
    """The copies of a row."""
    with _engine(stack).begin() as tx:
        copies = text("SELECT id FROM accounts.outbox WHERE redriven_from = :id ORDER BY id")
        return list(tx.execute(copies, {"id": row}).scalars())
