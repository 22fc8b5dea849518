"""How what is due is shared: each lane has its own room, and in it organizations take turns."""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from chassis import strict_json
from intents.execution.store.expressions import IS_DUE, QUEUES_WITH_WORK

_MAY_BE_TAKEN = f"{IS_DUE} AND i.account_id <> ALL ($4)"

# Of the organizations that have something due in a lane each gives the same number, the first is the one after the last
# turn. Of what is due only that in accounts that are left out ($4) is gone through. $1 and $8 are the room and the
# allowances of a lane of which $6 and $7 say nothing.
DUE = f"""queue AS ({QUEUES_WITH_WORK}
    ), known AS MATERIALIZED (
        SELECT * FROM json_to_recordset($6)
            AS known (lane text COLLATE "C", room integer, of_others integer, after uuid)
    ), held AS MATERIALIZED (
        SELECT * FROM json_to_recordset($7) AS held (lane text COLLATE "C", organization_id uuid, allowance integer)
    ), allowed AS MATERIALIZED (
        SELECT lane, organization_id, coalesce(known.room, $1) AS room,
               coalesce(held.allowance, known.of_others, $8) AS allowance,
               coalesce(organization_id <= known.after, false) AS had_its_turn
        FROM queue LEFT JOIN known USING (lane) LEFT JOIN held USING (lane, organization_id)
    ), waiting AS MATERIALIZED (
        SELECT lane, organization_id, room, allowance, had_its_turn,
               (room + count(*) OVER of_lane - 1) / count(*) OVER of_lane AS share
        FROM allowed
        WHERE room > 0 AND allowance > 0 AND (
            SELECT true FROM intents.intent i
            WHERE i.lane = allowed.lane AND i.organization_id = allowed.organization_id AND {_MAY_BE_TAKEN} LIMIT 1)
        WINDOW of_lane AS (PARTITION BY lane)
    ), due AS MATERIALIZED (
        SELECT due.* FROM (SELECT DISTINCT lane, room FROM waiting) AS searched CROSS JOIN LATERAL (
            SELECT due.* FROM (
                SELECT * FROM waiting WHERE lane = searched.lane ORDER BY had_its_turn, organization_id
            ) AS turn CROSS JOIN LATERAL (
                SELECT i.account_id, i.id, i.submit_started_at FROM intents.intent i
                WHERE i.lane = turn.lane AND i.organization_id = turn.organization_id AND {_MAY_BE_TAKEN}
                ORDER BY i.next_attempt_at
                LIMIT least(turn.allowance, turn.share)
                FOR UPDATE SKIP LOCKED
            ) AS due LIMIT searched.room
        ) AS due"""  # noqa: S608 - only our own words
"""The queries up to `due`, which locks what is claimed; its parenthesis is left open."""


class Shares(NamedTuple):
    """How organizations share what is claimed of one lane."""

    room: int
    """How many commands may be taken in all,"""
    allowances: Mapping[UUID, int]
    """of those that hold some already,"""
    of_others: int
    """and of each other one."""
    after: UUID = UUID(int=0)
    """Whose turn it was last."""


def as_json(shares: Mapping[str, Shares]) -> tuple[str, str]:
    """Of lanes, and of organizations in them."""
    known = [
        {"lane": lane, "room": of.room, "of_others": of.of_others, "after": str(of.after)}
        for lane, of in shares.items()
    ]
    held = [
        {"lane": lane, "organization_id": str(organization_id), "allowance": allowance}
        for lane, of in shares.items()
        for organization_id, allowance in of.allowances.items()
    ]
    return strict_json.dumps(known).decode(), strict_json.dumps(held).decode()
