"""Whether two values are the same but for the rounding of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from pilotlight_runtime.guest.rehearsals.same_values import difference


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ("a", "a"),
        (None, None),
        (b"a", b"a"),
        (1, 1.0),
        (1.0005, 1.0),
        (0.0005, 0.0),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (True, True),
        ([1, [2.0, "x"]], [1, [2.0001, "x"]]),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1.0001}),
        (np.array([1.0, 2.0]), np.array([1.0005, 2.0])),
        (torch.tensor([1.0, 2.0], dtype=torch.bfloat16), np.array([1.0, 2.0])),
        (np.array(["a", "b"]), np.array(["a", "b"])),
        (np.array([1, 2]), [1, 2]),
    ],
)
def test_rounding_is_no_difference(actual: Any, expected: Any) -> None:
    """Nor is the order of keys, or the device of a tensor."""
    assert difference(actual, expected, 1e-3) == ""


@pytest.mark.parametrize(
    ("actual", "expected", "why"),
    [
        ("a", "b", "the answer is 'a': expected 'b'"),
        (1.1, 1.0, "the answer is 1.1: expected 1.0"),
        (1, True, "the answer is 1: expected True"),
        ("1", 1, "the answer is '1': expected 1"),
        (math.nan, 1.0, "the answer is nan: expected 1.0"),
        ([1], [1, 2], "the answer has 1 items: expected 2"),
        ([1, [2, 3]], [1, [2, 4]], "the answer[1][1] is 3: expected 4"),
        ({"a": 1}, {"b": 1}, "the answer has the keys ['a']: expected ['b']"),
        ({"a": 1}, {"a": 2}, "the answer['a'] is 1: expected 2"),
        (np.zeros((2, 2)), np.zeros((2, 3)), "the answer has the shape (2, 2): expected (2, 3)"),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]]), "the answer[1, 1] is 4: expected 5"),
        (np.array(["a"]), np.array(["b"]), "the answer[0] is 'a': expected 'b'"),
        (None, np.zeros(2), "the answer has the shape (): expected (2,)"),
        ("x" * 1000, "y", f"the answer is {('x' * 199).join(chr(39) + chr(39))[:200]}…: expected 'y'"),
    ],
)
def test_a_difference_says_where_it_is(actual: Any, expected: Any, why: str) -> None:
    """And both values, shortened."""
    assert difference(actual, expected, 1e-3) == why


def test_a_tolerance_of_nothing_is_exact() -> None:
    """For models that always answer the same."""
    assert difference(1.0000001, 1.0, 0.0)
    assert difference(1.0, 1, 0.0) == ""


def test_whole_numbers_are_the_same_or_not() -> None:
    """They count or name something, as a token's id does; beside one that is not whole they are numbers as others."""
    import numpy as np

    assert difference([50_001], [50_000], 1e-3) == "the answer[0] is 50001: expected 50000"
    assert difference(np.array([50_001]), np.array([50_000]), 1e-3)
    assert not difference(50_001, 50_000.0, 1e-3)
    assert difference(10**400, 1.0, 1e-3)
