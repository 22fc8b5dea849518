"""The only place that tolerates an unavailable database. Every other error is a fault and is raised."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy.exc import SQLAlchemyError

from chassis import db, logs

log = logs.get(__name__)

T = TypeVar("T")
Otherwise = TypeVar("Otherwise")


def unless_unavailable(worker: str, step: Callable[[], T], otherwise: Otherwise) -> T | Otherwise:
    """The step's result, or `otherwise` while the database is unavailable."""
    try:
        return step()
    except SQLAlchemyError as error:
        if not db.is_unavailable(error):
            raise
        log.warning("database_unavailable", worker=worker, **db.log_fields(error))
        return otherwise


@contextmanager
def outage_as(domain_error: type[Exception]) -> Iterator[None]:
    """Raise this domain error instead while the database is unavailable."""
    try:
        yield
    except SQLAlchemyError as error:
        if not db.is_unavailable(error):
            raise
        log.warning("database_unavailable", raised=domain_error.__name__, **db.log_fields(error))
        raise domain_error from error
