"""How work is shared: each lane has its own room, and in it organizations take turns."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from chassis import strict_json
from intents.execution.model.tries import ALL, NO_LIMIT, Tries
from intents.execution.store.expressions import IS_DUE, QUEUES_WITH_WORK, WAITS

_OF_AN_ACCOUNT_TO_CLAIM = "i.account_id <> ALL ($4)"


def _by_turns(name: str, source: str, condition: str, order: str) -> str:
    """Queries up to `name`, which locks what is taken; each organization of a lane gives the same number, the first is
    the one after the last turn. Of what fulfills the condition only that in accounts left out ($4) is gone through."""
    taken = f"{condition} AND {_OF_AN_ACCOUNT_TO_CLAIM}"
    return f"""{name}_of AS MATERIALIZED (
        SELECT lane, organization_id, room, allowance, had_its_turn,
               (room + count(*) OVER of_lane - 1) / count(*) OVER of_lane AS share
        FROM ({source}) AS allowed
        WHERE room > 0 AND allowance > 0 AND (
            SELECT true FROM intents.intent i
            WHERE i.lane = allowed.lane AND i.organization_id = allowed.organization_id AND {taken} LIMIT 1)
        WINDOW of_lane AS (PARTITION BY lane)
    ), {name} AS MATERIALIZED (
        SELECT taken.* FROM (SELECT DISTINCT lane, room FROM {name}_of) AS searched CROSS JOIN LATERAL (
            SELECT taken.* FROM (
                SELECT * FROM {name}_of WHERE lane = searched.lane ORDER BY had_its_turn, organization_id
            ) AS turn CROSS JOIN LATERAL (
                SELECT i.lane, i.organization_id, i.account_id, i.id, i.submit_started_at, i.waiting_since
                FROM intents.intent i
                WHERE i.lane = turn.lane AND i.organization_id = turn.organization_id AND {taken}
                ORDER BY {order}
                LIMIT least(turn.allowance, turn.share)
                FOR UPDATE SKIP LOCKED
            ) AS taken LIMIT searched.room
        ) AS taken
    )"""  # noqa: S608 - only our own words


# $1 and $8 are the room and the allowances of a lane of which $6 and $7 say nothing. Half of them is for what waits for
# a circuit, as far as it may be tried: neither what is new nor what waits has to wait for the end of the other. Half of
# an odd allowance is rounded up as often as down, since it may be 1.
_OF_WAITING = """
        SELECT lane, organization_id, coalesce(organization_id <= after_try, false) AS had_its_turn,
               least((room + 1) / 2, tries_of_lane) AS room,
               least((allowance + (random() < 0.5)::integer) / 2, tries) AS allowance
        FROM allowed"""
_OF_DUE = """
        SELECT lane, organization_id, coalesce(organization_id <= after, false) AS had_its_turn,
               room - coalesce(sum(count) OVER (PARTITION BY lane), 0)::integer AS room,
               allowance - coalesce(count, 0) AS allowance
        FROM allowed LEFT JOIN (
            SELECT lane, organization_id, count(*)::integer FROM waiting GROUP BY lane, organization_id
        ) AS waited USING (lane, organization_id)"""
CLAIMABLE = f"""queue AS ({QUEUES_WITH_WORK}
    ), known AS MATERIALIZED (
        SELECT * FROM json_to_recordset($6) AS known (
            lane text COLLATE "C", room integer, of_others integer, after uuid,
            after_try uuid, tries integer, tries_of_each integer)
    ), held AS MATERIALIZED (
        SELECT * FROM json_to_recordset($7) AS held (
            lane text COLLATE "C", organization_id uuid, allowance integer, tries integer)
    ), allowed AS MATERIALIZED (
        SELECT lane, organization_id, coalesce(known.room, $1) AS room,
               coalesce(held.allowance, known.of_others, $8) AS allowance,
               coalesce(known.tries, {NO_LIMIT}) AS tries_of_lane,
               coalesce(held.tries, known.tries_of_each, {NO_LIMIT}) AS tries,
               known.after, known.after_try
        FROM queue LEFT JOIN known USING (lane) LEFT JOIN held USING (lane, organization_id)
    ), {_by_turns("waiting", _OF_WAITING, WAITS, "i.waiting_since")}, {
    _by_turns("due", _OF_DUE, IS_DUE, "i.next_attempt_at")
}, claimable AS (
        SELECT * FROM waiting UNION ALL SELECT * FROM due
    )"""  # noqa: S608 - only our own words
"""The queries up to `claimable`, which locks what is claimed."""


class Shares(NamedTuple):
    """How organizations share what is claimed of one lane."""

    room: int
    """How many commands may be taken in all,"""
    allowances: Mapping[UUID, int]
    """of those that hold some already,"""
    of_others: int
    """and of each other one."""
    after: UUID = UUID(int=0)
    """Whose turn it was last,"""
    after_try: UUID = UUID(int=0)
    """and among those with something in the wait queue of a circuit."""
    tries: Tries = ALL
    """How much of that may be taken."""


def as_json(shares: Mapping[str, Shares]) -> tuple[str, str]:
    """Of lanes, and of organizations in them."""
    known = [_lane(lane, of) for lane, of in shares.items()]
    held = [_organization(lane, of, id_) for lane, of in shares.items() for id_ in of.allowances.keys() | of.tries.of]
    return strict_json.dumps(known).decode(), strict_json.dumps(held).decode()


def _lane(lane: str, of: Shares) -> dict[str, Any]:
    tries = {"tries": of.tries.in_all, "tries_of_each": of.tries.of_each}
    turns = {"after": str(of.after), "after_try": str(of.after_try)}
    return {"lane": lane, "room": of.room, "of_others": of.of_others} | turns | tries


def _organization(lane: str, of: Shares, organization_id: UUID) -> dict[str, Any]:
    tries, allowance = of.tries.of.get(organization_id), of.allowances.get(organization_id)
    return {"lane": lane, "organization_id": str(organization_id), "allowance": allowance, "tries": tries}
