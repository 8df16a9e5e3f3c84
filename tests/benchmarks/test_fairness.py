"""The sums of the fairness benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import fairness_plot
from benchmarks.crowd import Answered
from benchmarks.fairness import jain, served, share_after, share_error

CALLS = [Answered(0.0, 2.0, 200, 1_000.0), Answered(0.0, 4.0, 200, 2_000.0), Answered(0.0, 4.0, 429, 2_000.0)]


def test_service_counts_for_the_part_between() -> None:
    """A call that reaches beyond a window counts for what lies within; a refused one does not."""
    assert served(CALLS, 1.5, 3.0) == pytest.approx(1.5)
    assert served(CALLS, 0.0, 9.0) == pytest.approx(3.0)


def test_a_share_is_had_from_the_first_window_that_is_full() -> None:
    """The second call begins at 2.0 and holds a slot until 4.0."""
    assert share_after(CALLS[1:], 1.0, fair=1.0) == pytest.approx(0.95)
    assert share_after([], 1.0, fair=1.0) == float("inf")


def test_jain_is_one_for_equals() -> None:
    """And one over n if one has everything."""
    assert jain([2.0, 2.0, 2.0]) == pytest.approx(1.0)
    assert jain([1.0, 0.0]) == pytest.approx(0.5)


def test_shares_are_compared_by_weight() -> None:
    """Tenants of one weight count together; the error is relative to the share they should have."""
    weights = {"a": 1.0, "b": 1.0, "c": 2.0}
    assert share_error({"a": 1.2, "b": 0.8, "c": 2.0}, weights) == pytest.approx(0.0)
    assert share_error({"a": 1.0, "b": 1.0, "c": 3.0}, weights) == pytest.approx(0.2)


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    """One column a load."""
    pytest.importorskip("matplotlib")
    panel = fairness_plot.Panel(held={"a": lambda begins, until: until - begins}, begins=0.0, seconds=3.0)
    assert panel.slots("a") == pytest.approx([1.0, 1.0, 1.0])
    fairness_plot.draw({"load": panel}, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
