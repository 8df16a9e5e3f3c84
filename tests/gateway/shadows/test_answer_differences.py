"""Whether two answers say the same."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.rollouts.rollout_record import ANSWER_TOLERANCE
from pilotlight_gateway.shadows.answer_differences import MOST_COMPARED, PART, differ

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def packed(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


@given(VALUES, VALUES)
def test_an_answer_is_the_same_as_itself_whatever_its_bytes(value: Any, more: Any) -> None:
    """Objects are the same in whichever order; one that has something else beside it differs."""
    one, other = packed({"a": value, "b": more}), packed({"b": more, "a": value})
    assert not asyncio.run(differ(one, other, ANSWER_TOLERANCE))
    assert asyncio.run(differ(packed([value]), packed([value, more]), ANSWER_TOLERANCE))


async def test_a_large_answer_is_compared_in_parts_between_which_calls_go_on() -> None:
    """Others have had many turns until it is known."""
    one, other = [packed([[1.0 / n, n] for n in range(1, 10 * PART)] + [last]) for last in (0, 1)]
    comparing = asyncio.create_task(differ(one, other, ANSWER_TOLERANCE))
    turns = 0
    while not comparing.done():
        turns += 1
        await asyncio.sleep(0)
    assert comparing.result()
    assert turns >= 20


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 1.0 + 1e-9),
        (1, 1.0),
        ({"a": [0.1 + 0.2], "b": 1}, {"b": 1, "a": [0.3]}),
        (float("nan"), float("nan")),
    ],
)
async def test_what_rounding_and_order_change_is_the_same(one: Any, other: Any) -> None:
    assert not await differ(packed(one), packed(other), ANSWER_TOLERANCE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1.0, 1.01),
        (True, 1),
        (False, 0.0),
        ([1, 2], [1]),
        ({"a": 1}, {"b": 1}),
        ("1", 1),
        (b"1", "1"),
        (None, 0),
        ([{"a": [1, "x"]}], [{"a": [1, "y"]}]),
        (float("nan"), 1.0),
        (float("inf"), 1e308),
    ],
)
async def test_what_says_something_else_differs(one: Any, other: Any) -> None:
    assert await differ(packed(one), packed(other), ANSWER_TOLERANCE)


async def test_a_coarser_tolerance_is_the_functions_own_word() -> None:
    assert not await differ(packed([1.0]), packed([1.01]), tolerance=0.02)


async def test_what_is_too_large_or_no_msgpack_is_compared_by_its_bytes() -> None:
    large = b"\xc6" + (MOST_COMPARED + 1).to_bytes(4, "big") + bytes(MOST_COMPARED + 1)
    assert not await differ(large, large, 1.0)
    assert await differ(large, packed(1), 1.0)
    assert await differ(b"\xc1", packed(1), 1.0)
