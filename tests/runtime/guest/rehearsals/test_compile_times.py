"""How long torch has compiled in this process."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pilotlight_runtime.guest.rehearsals.compile_times import compile_s

UTILS = "torch._dynamo.utils"


def raises() -> dict[str, float]:
    raise AttributeError("renamed")


@pytest.mark.parametrize(
    ("utils", "seconds"),
    [
        (None, 0.0),
        (SimpleNamespace(), 0.0),
        (SimpleNamespace(calculate_time_spent=dict), 0.0),
        (SimpleNamespace(calculate_time_spent=raises), 0.0),
        (SimpleNamespace(calculate_time_spent=lambda: {"total_wall_time": float("nan")}), 0.0),
        (SimpleNamespace(calculate_time_spent=lambda: {"total_wall_time": 2.5}), 2.5),
    ],
)
def test_what_torch_says_is_believed_if_it_says_something(
    monkeypatch: pytest.MonkeyPatch, utils: Any, seconds: float
) -> None:
    """It is no public function of torch."""
    monkeypatch.setitem(sys.modules, UTILS, utils)

    assert compile_s() == seconds


def test_it_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most functions compile nothing."""
    monkeypatch.delitem(sys.modules, UTILS, raising=False)

    assert compile_s() == 0.0
    assert UTILS not in sys.modules
