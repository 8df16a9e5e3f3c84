"""Pictures are drawn, or what is missing is named."""

from __future__ import annotations

import importlib.util

import pytest

from pilotlight_autoscaler.simulator.results import result_pictures
from pilotlight_autoscaler.simulator.results.result_pictures import (
    CannotDraw,
    check_drawable,
    pareto_png,
    timeline_png,
)
from tests.autoscaler.simulator.simulated import recorded, simulation

PNG = b"\x89PNG"


def test_both_pictures_are_drawn() -> None:
    """Of any number of simulations."""
    results = {
        f"window_s={window}": simulation({"f": recorded((0.0, 2.0), (200.0, 2.0))}, window_s=window).run()
        for window in (0, 300)
    }
    assert pareto_png(results).startswith(PNG)
    assert timeline_png("window_s=0", results["window_s=0"]).startswith(PNG)


def test_only_the_best_are_joined() -> None:
    """One that another is better than in both is left out."""
    assert result_pictures._frontier([(3.0, 1.0), (1.0, 3.0), (2.0, 3.5), (2.0, 2.0)]) == [
        (1.0, 3.0), (2.0, 2.0), (3.0, 1.0)
    ]  # fmt: skip


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the words that install it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(CannotDraw, match=r"pip install 'pilotlight\[plots\]'"):
        check_drawable()
