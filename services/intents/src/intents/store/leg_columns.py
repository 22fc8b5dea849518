"""The columns of an intent that is a leg of an order group."""

from typing import Any

from sqlalchemy import Boolean, CheckConstraint, Column, DateTime, Text, Uuid

from intents.model.groups import ROLES


def leg_columns() -> tuple[Any, ...]:
    """A child without `armed_at` waits for its parent; limits do not count what is `uncounted` as open."""
    roles = ", ".join(f"'{role}'" for role in ROLES)
    return (
        Column("group_id", Uuid),
        Column("group_role", Text),
        Column("armed_at", DateTime(timezone=True)),
        Column("uncounted", Boolean, nullable=False, server_default="false"),
        CheckConstraint(f"group_role IN ({roles})", name="group_role"),
    )
