"""The client order id is the same in Python, in SQL and at the broker."""

from uuid import UUID

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from intents.execution.client_order_id import (
    client_order_id,
    duplicate,
    is_duplicate,
    is_ours,
    of_action_sql,
    of_key_sql,
)

_IN_SQL = text(f"SELECT {of_action_sql('CAST(:action_id AS uuid)')}")
_OF_KEY = text(f"SELECT {of_key_sql('CAST(:key AS text)')}")
on_postgres = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_client_order_id_is_tip_and_the_actions_id_in_hex():
    action_id = UUID("0123abcd-0000-4000-8000-00000000beef")

    assert client_order_id(action_id) == "tip-0123abcd00004000800000000000beef"


@given(action_id=st.uuids())
@on_postgres
def test_postgres_makes_the_same_client_order_id(admin: Connection, action_id: UUID):
    assert admin.execute(_IN_SQL, {"action_id": action_id}).scalar_one() == client_order_id(action_id)


@given(action_id=st.uuids(), broker_order_id=st.uuids().map(str))
@on_postgres
def test_a_duplicate_keeps_the_client_order_id_of_its_order(admin: Connection, action_id: UUID, broker_order_id: str):
    first = client_order_id(action_id)
    second = duplicate(first, broker_order_id)

    assert is_duplicate(second) and not is_duplicate(first)
    assert {admin.execute(_OF_KEY, {"key": key}).scalar_one() for key in (first, second)} == {first}


def test_only_an_id_of_this_form_is_ours():
    ours = client_order_id(UUID(int=7))

    assert is_ours(ours)
    assert not any(map(is_ours, ("", "tip-1", ours.upper(), ours[:-1], ours + "0", f"x{ours}")))
