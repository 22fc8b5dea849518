"""Settings of every database session of execution."""

from typing import Any

from sqlalchemy import Engine, event

from intents.store.connections import PLAN_BY_KEYS


def keep_plans(engine: Engine) -> None:
    """Let each statement be planned once for a connection, and by its keys."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(PLAN_BY_KEYS)
        connection.commit()
