"""An unavailable database is tolerated in one place; every other error is a fault."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from chassis import db
from chassis.worker.outage import outage_as, unless_unavailable


class ShopClosed(Exception):
    pass


@pytest.fixture
def nowhere() -> Iterator[Engine]:
    made = db.engine("postgresql://nobody@127.0.0.1:1/none", pool_size=1, name="nowhere")
    yield made
    made.dispose()


def query(engine: Engine, statement: str) -> Any:
    with engine.connect() as tx:
        return tx.execute(text(statement)).scalar_one()


def closed_meanwhile(step: Callable[[], object]) -> None:
    with outage_as(ShopClosed):
        step()


def fail(error: Exception) -> None:
    raise error


def test_an_unavailable_database_gives_the_other_result(nowhere: Engine) -> None:
    assert unless_unavailable("test", partial(query, nowhere, "SELECT 1"), "later") == "later"


def test_a_step_that_succeeds_gives_its_own_result(engine: Engine) -> None:
    assert unless_unavailable("test", partial(query, engine, "SELECT 1"), "later") == 1


@pytest.mark.parametrize("error", [ValueError(), ProgrammingError("", {}, Exception())], ids=["ours", "sql"])
@pytest.mark.parametrize(
    "guarded",
    [lambda step: unless_unavailable("test", step, None), closed_meanwhile],
    ids=["unless_unavailable", "outage_as"],
)
def test_a_fault_is_raised_as_it_is(guarded: Callable[[Callable[[], None]], object], error: Exception) -> None:
    with pytest.raises(type(error)):
        guarded(partial(fail, error))


def test_an_unavailable_database_is_raised_as_the_domain_error(nowhere: Engine) -> None:
    with pytest.raises(ShopClosed) as raised:
        closed_meanwhile(partial(query, nowhere, "SELECT 1"))

    assert isinstance(raised.value.__cause__, OperationalError)
