"""Settings of every database session of execution."""

from typing import Any

from sqlalchemy import Engine, event


def keep_plans(engine: Engine) -> None:
    """Let each statement be planned once for a connection, and by its keys."""

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: object) -> None:
        # Our few statements are large: planning one anew takes longer than running it for one intent. And each reaches
        # its rows by a key: a plan made while the tables were still empty must not scan them when they no longer are.
        with connection.cursor() as cursor:
            cursor.execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off")
        connection.commit()
