"""Whether two answers say the same. Pure."""

from __future__ import annotations

import math
from typing import Any

import msgspec

MOST_COMPARED = 2**20
"""Bytes of an answer; larger ones are compared byte by byte."""
DEEPEST = 64

_decoder = msgspec.msgpack.Decoder()


def differ(one: bytes, other: bytes, tolerance: float) -> bool:
    """Whether two answers (msgpack) differ: numbers by more than `tolerance`, as a part or in themselves, all else at
    all.
    """
    if one == other:
        return False
    if max(len(one), len(other)) > MOST_COMPARED:
        return True
    try:
        return not _same(_decoder.decode(one), _decoder.decode(other), tolerance, DEEPEST)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return True


def _same(one: Any, other: Any, tolerance: float, depth: int) -> bool:
    if depth <= 0:
        return bool(one == other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        both_nan = one != one and other != other
        return both_nan or one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k], tolerance, depth - 1) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(
            _same(a, b, tolerance, depth - 1) for a, b in zip(one, other, strict=True)
        )
    return type(one) is type(other) and bool(one == other)
