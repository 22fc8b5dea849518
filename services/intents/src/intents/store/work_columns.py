"""Columns of an intent: what the executor has still to do, and who of them is at it."""

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Index, Integer, Uuid, text

_MOMENT = DateTime(timezone=True)


def work_columns() -> tuple[Any, ...]:
    return (
        Column("open_actions", Integer, nullable=False, server_default="1"),
        Column("done_sequence", BigInteger, nullable=False, server_default="0"),
        Column("next_attempt_at", _MOMENT, nullable=False),
        Column("attempts", Integer, nullable=False, server_default="0"),
        Column("submit_started_at", _MOMENT),
        Column("lease_token", Uuid),
        Column("lease_until", _MOMENT),
        Column("accepted_at", _MOMENT),
        Column("lease_holder", Integer),
        Column("absences", Integer, nullable=False, server_default="0"),
        Column("overordered", Boolean, nullable=False, server_default="false"),
        Column("waiting_since", _MOMENT),  # for an open circuit
        _index("intent_work_idx", "next_attempt_at", "open_actions > 0"),
        _index("intent_waiting_idx", "waiting_since", "open_actions > 0 AND waiting_since IS NOT NULL"),
    )


def _index(name: str, order: str, condition: str) -> Index:
    return Index(name, "lane", "organization_id", order, postgresql_where=text(condition))
