"""Admission: strangers queue by address, known callers by organization, and refusals are counted by address."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from chassis import keys, problems
from chassis.authentication import PresentedCredentials
from chassis.principals import Kind, Principal
from stream_gateway.admission import STRANGERS_PENDING, Admission, Refusals
from stream_gateway.callers import Caller
from stream_gateway.model import AccountNotFound, TooManyStreams
from stream_gateway.quota import Limits, StreamQuota


def presented(value: str, address: str = "203.0.113.1") -> PresentedCredentials:
    return PresentedCredentials((("key", value),), None, address)


def an_admission(refusals_per_minute: int = 1000, **limits: int) -> Admission:
    generous = {"per_principal": 1000, "per_organization": 1000, "per_process": 1000}
    return Admission(StreamQuota(Limits(**{**generous, **limits})), refusals_per_minute)


async def enter(admission: Admission, shown: PresentedCredentials, admit: Callable[[], Any]) -> Any:
    with admission.pending(shown):
        return await admission.admit(shown, admit)


def admitting(organization_id: UUID) -> Any:
    nothing: Any = None
    caller = Caller(Principal(Kind.API_KEY, str(uuid4()), organization_id))
    return lambda: (caller, nothing, nothing)


def refusing() -> Any:
    raise problems.unauthenticated()


def test_strangers_wait_in_turn_by_address() -> None:
    release = threading.Event()
    begun: list[str] = []

    async def scenario() -> None:
        admission = an_admission()

        def stranger(address: str) -> Any:
            def admit() -> Any:
                begun.append(address)
                release.wait()
                refusing()

            return enter(admission, presented(keys.generate("paper"), address), admit)

        crowd = [asyncio.create_task(stranger("203.0.113.1")) for _ in range(100)]
        await asyncio.sleep(0)
        single = asyncio.create_task(stranger("203.0.113.2"))
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*crowd, single, return_exceptions=True)
        admission.close()

    asyncio.run(scenario())

    assert begun.index("203.0.113.2") <= 3


def test_a_credential_that_many_streams_open_with_at_once_is_a_stranger_once() -> None:
    async def scenario() -> int:
        admission = an_admission()
        threads: set[str] = set()
        let_in = admitting(uuid4())

        def admit() -> Any:
            threads.add(threading.current_thread().name)
            return let_in()

        shown = presented(keys.generate("paper"))
        await asyncio.gather(*(enter(admission, shown, admit) for _ in range(50)))
        admission.close()
        return sum(name.startswith("admit-unknown") for name in threads)

    assert asyncio.run(scenario()) == 1


def test_a_credential_that_is_refused_is_a_stranger_again() -> None:
    async def scenario() -> None:
        admission = an_admission(refusals_per_minute=1)
        shown = presented(keys.generate("paper"))
        await enter(admission, shown, admitting(uuid4()))
        for status in (401, 429):
            with pytest.raises(problems.Problem) as refused:
                await enter(admission, shown, refusing)
            assert refused.value.status == status
        admission.close()

    asyncio.run(scenario())


def test_a_known_caller_has_no_more_streams_open_and_pending_than_its_organization_may_have() -> None:
    release = threading.Event()
    limits = Limits(per_principal=10, per_organization=3, per_process=100)

    async def scenario() -> int:
        quota = StreamQuota(limits)
        admission = Admission(quota, 1000)
        crowded, other = admitting(uuid4()), admitting(uuid4())
        mine, theirs = presented(keys.generate("paper")), presented(keys.generate("paper"))
        caller, *_ = await enter(admission, mine, crowded)
        await enter(admission, theirs, other)
        quota.take((caller.name, caller.principal.organization_id))
        waiting = [
            asyncio.create_task(enter(admission, mine, lambda: release.wait(60) and crowded())) for _ in range(2)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TooManyStreams):
            await enter(admission, mine, crowded)
        theirs_waits = asyncio.create_task(enter(admission, theirs, other))
        release.set()
        await asyncio.gather(*waiting, theirs_waits)
        admission.close()
        with admission.pending(mine), admission.pending(mine):
            return len(quota)

    assert asyncio.run(scenario()) == 1


def test_an_address_has_only_so_many_strangers_waiting_also_with_one_credential() -> None:
    release = threading.Event()

    async def scenario() -> tuple[int, int]:
        admission = an_admission()
        shown = presented("one and the same")

        def admit() -> Any:
            release.wait(60)
            refusing()

        waiting = [asyncio.create_task(enter(admission, shown, admit)) for _ in range(STRANGERS_PENDING)]
        await asyncio.sleep(0)
        with pytest.raises(problems.Problem) as refused:
            await enter(admission, shown, admit)
        another = asyncio.create_task(enter(admission, presented("another", "203.0.113.2"), admitting(uuid4())))
        release.set()
        await another
        await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(problems.Problem) as refused_by_database:
            await enter(admission, shown, refusing)
        admission.close()
        return refused.value.status, refused_by_database.value.status

    assert asyncio.run(scenario()) == (429, 401)


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what it is given to run."""

    scheduled = 0

    def call_soon(self, *arguments: Any, **options: Any) -> asyncio.Handle:
        self.scheduled += 1
        return super().call_soon(*arguments, **options)


def test_refusals_of_one_invented_key_cost_no_more_the_more_of_them_wait() -> None:
    async def crowd(size: int) -> None:
        admission = an_admission()
        shown = presented("invented")
        answers = await asyncio.gather(
            *(enter(admission, shown, refusing) for _ in range(size)), return_exceptions=True
        )
        assert {answer.status for answer in answers} == {401}
        admission.close()

    def cost(size: int) -> float:
        with asyncio.Runner(loop_factory=CountingLoop) as runner:
            runner.run(crowd(size))
            return runner.get_loop().scheduled / size

    assert cost(400) < 2 * cost(20)


def test_a_good_key_on_an_account_that_it_may_not_see_counts_as_a_refusal() -> None:
    async def scenario() -> list[type[Exception]]:
        admission = an_admission(refusals_per_minute=2)
        shown = presented(keys.generate("paper"))

        def admit() -> Any:
            raise AccountNotFound

        answers = [(await asyncio.gather(enter(admission, shown, admit), return_exceptions=True))[0] for _ in range(3)]
        admission.close()
        return [type(answer) for answer in answers]

    assert asyncio.run(scenario()) == [AccountNotFound, AccountNotFound, problems.Problem]


def test_a_refusal_counts_for_its_address_alone() -> None:
    refusals = Refusals(per_minute=2)
    for _ in range(2):
        refusals.check("203.0.113.1")
        refusals.count("203.0.113.1")

    refusals.check("203.0.113.2")
    with pytest.raises(problems.Problem) as refused:
        refusals.check("203.0.113.1")

    assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
