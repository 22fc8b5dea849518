import asyncio

import pytest

from tip_testing.waiting import eventually, eventually_async


def test_the_first_true_answer_is_given_back() -> None:
    answers = iter([None, 0, "", "there"])

    assert eventually(lambda: next(answers), every=0) == "there"


def test_waiting_in_vain_fails_with_the_last_answer() -> None:
    with pytest.raises(AssertionError, match=r"not within 0.01 s: \[\]"):
        eventually(lambda: [], seconds=0.01, every=0)


def test_in_a_loop_both_kinds_of_functions_can_be_waited_for() -> None:
    async def there() -> str:
        return "there"

    async def both() -> list[str]:
        return [await eventually_async(there), await eventually_async(lambda: "here")]

    assert asyncio.run(both()) == ["there", "here"]
