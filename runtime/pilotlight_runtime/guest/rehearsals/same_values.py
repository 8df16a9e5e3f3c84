"""Whether two values off the wire are the same but for the rounding of numbers."""

from __future__ import annotations

import math
from typing import Any

SHOWN = 200
"""Characters of a value in a text."""


def difference(actual: Any, expected: Any, tolerance: float, where: str = "the answer") -> str:
    """Where and how `actual` is not `expected`; "": it is the same.

    Numbers may differ by the part `tolerance` of them, and near 0 by as much itself, but whole ones: two that are whole
    count or name something.
    """
    if hasattr(expected, "shape") or hasattr(actual, "shape"):
        return _arrays(actual, expected, tolerance, where)
    if type(actual) is type(expected) is int:
        return "" if actual == expected else _other(actual, expected, where)
    if _is_number(actual) and _is_number(expected):
        return "" if _are_close(actual, expected, tolerance) else _other(actual, expected, where)
    if isinstance(actual, list) and isinstance(expected, list):
        if len(actual) != len(expected):
            return f"{where} has {len(actual)} items: expected {len(expected)}"
        pairs = ((f"{where}[{number}]", *pair) for number, pair in enumerate(zip(actual, expected, strict=True)))
        return next((why for at, a, e in pairs if (why := difference(a, e, tolerance, at))), "")
    if isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            return f"{where} has the keys {_shown(list(actual))}: expected {_shown(list(expected))}"
        found = (difference(actual[key], expected[key], tolerance, f"{where}[{key!r:.40}]") for key in expected)
        return next((why for why in found if why), "")
    return "" if type(actual) is type(expected) and actual == expected else _other(actual, expected, where)


def _are_close(one: float, other: float, tolerance: float) -> bool:
    try:
        close = math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
        return close or (math.isnan(one) and math.isnan(other))
    except OverflowError:  # a whole number that no float can be
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _arrays(actual: Any, expected: Any, tolerance: float, where: str) -> str:
    import numpy as np

    ours, theirs = _plain(actual), _plain(expected)
    if ours.shape != theirs.shape:
        return f"{where} has the shape {ours.shape}: expected {theirs.shape}"
    if ours.dtype.kind in "biu" and theirs.dtype.kind in "biu":
        close = ours == theirs
    elif ours.dtype.kind in "biufc" and theirs.dtype.kind in "biufc":
        close = np.isclose(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        close = ours == theirs
    if np.all(close):
        return ""
    at = tuple(int(place) for place in np.argwhere(~np.asarray(close))[0])
    return _other(ours[at].item(), theirs[at].item(), f"{where}{list(at)}")


def _plain(value: Any) -> Any:
    """As a numpy array; numpy has no bfloat16."""
    import numpy as np

    if hasattr(value, "detach"):
        return np.asarray(value.float() if value.is_floating_point() else value)
    return np.asarray(value)


def _other(actual: Any, expected: Any, where: str) -> str:
    return f"{where} is {_shown(actual)}: expected {_shown(expected)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"
