"""Whether two answers say the same.

A large answer has a hundred thousand values, and they are compared on the loop that serves callers: in parts, between
which calls go on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Any

import msgspec

MOST_COMPARED = 2**20
"""Bytes of an answer; larger ones are compared byte by byte."""
DEEPEST = 64
PART = 500
"""Values that are compared at once: a third of a millisecond."""

_decoder = msgspec.msgpack.Decoder()


async def differ(one: bytes, other: bytes, tolerance: float) -> bool:
    """Whether two answers (msgpack) differ: numbers by more than `tolerance`, as a part or in themselves, all else at
    all.
    """
    if one == other:
        return False
    if max(len(one), len(other)) > MOST_COMPARED:
        return True
    try:
        compared = _Compared(_decoder.decode(one), _decoder.decode(other), tolerance)
        while True:
            if (found := compared.go_on(PART)) is not None:
                return found
            await asyncio.sleep(0)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return True


class _Compared:
    """Two values that are compared: what is left of each list and object that it is in."""

    def __init__(self, one: Any, other: Any, tolerance: float) -> None:
        self._tolerance = tolerance
        self._inside: list[Iterator[tuple[Any, Any]]] = [iter(((one, other),))]

    def go_on(self, most: int) -> bool | None:
        """Compare so many further values: whether both differ; None: that is not known yet."""
        for _ in range(most):
            if not self._inside:
                return False
            both = next(self._inside[-1], None)
            if both is None:
                self._inside.pop()
            elif not self._is_same(*both):
                return True
        return None

    def _is_same(self, one: Any, other: Any) -> bool:
        """Whether two values are; of those that have others in them, as far as can be seen without looking inside."""
        if len(self._inside) > DEEPEST:
            return bool(one == other)
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, (int, float)) and isinstance(other, (int, float)):
            both_nan = one != one and other != other
            near = self._tolerance
            return both_nan or one == other or math.isclose(one, other, rel_tol=near, abs_tol=near)
        if isinstance(one, dict) and isinstance(other, dict):
            self._inside.append((one[key], other[key]) for key in one if key in other)
            return one.keys() == other.keys()
        if isinstance(one, list) and isinstance(other, list):
            self._inside.append(zip(one, other, strict=False))
            return len(one) == len(other)
        return type(one) is type(other) and bool(one == other)
