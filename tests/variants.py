"""Of a row of like tests, those that CI runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def with_variants(values: Iterable[Any], in_ci: int) -> list[Any]:
    """The parameters of a test, of which all but the first `in_ci` are variants."""
    return [
        value if number < in_ci else pytest.param(*_all_of(value), marks=pytest.mark.variant)
        for number, value in enumerate(values)
    ]


def _all_of(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
