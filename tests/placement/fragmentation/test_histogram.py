"""What has been asked for lately."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.fragmentation.histogram import (
    HALF_LIFE_S,
    MAX_SHAPES,
    AskShape,
    DemandHistogram,
    distance,
    round_up,
)
from tests.placement.makers import ask

SMALL, LARGE = AskShape(mib=4096), AskShape(mib=40_960)


def test_an_ask_weighs_half_after_its_half_life() -> None:
    """However long the histogram lives."""
    histogram = DemandHistogram()
    for day in range(400):
        histogram.observe(LARGE, day * 86_400.0)
    at = 399 * 86_400.0
    histogram.observe(SMALL, at)

    assert histogram.weights(at)[SMALL] == pytest.approx(1.0)
    assert histogram.weights(at + HALF_LIFE_S)[SMALL] == pytest.approx(0.5)
    assert histogram.shares() == pytest.approx({SMALL: 0.5, LARGE: 0.5})


def test_it_stays_bounded() -> None:
    """The lightest shapes are forgotten first."""
    histogram = DemandHistogram()
    for number in range(10 * MAX_SHAPES):
        histogram.observe(AskShape(mib=256 * (number + 1)), 0.0)
    histogram.observe(SMALL, 0.0, count=100.0)

    assert len(list(histogram)) <= 2 * MAX_SHAPES
    assert SMALL in histogram


def test_the_shape_of_an_ask() -> None:
    """Rounded up; what needs whole devices has no memory of its own; a CPU slot has no shape."""
    assert AskShape.of(ask("ANY", gib=4.1)) == AskShape(mib=4352)
    assert AskShape.of(ask("ANY", gib=4, isolation=Isolation.MIG)) == AskShape(mib=4096, share=False)
    assert AskShape.of(ask("ANY")) == AskShape(mib=0, share=False)
    assert AskShape.of(ask("ANY:4", gib=200)) == AskShape(mib=0, count=4, share=False)
    assert AskShape.of(ask()) is None


def test_the_shape_of_an_ask_says_what_it_needs_of_the_host_and_which_types_it_accepts() -> None:
    """The host's part rounded up to three bits; the order of types does not matter, and with any there is none."""
    shape = AskShape.of(ask("T4", "H100", gib=4, cpu=9000, memory=2**30 + 1))

    assert shape == AskShape(mib=4096, cpu=10_240, memory=1280, types=("H100", "T4"))
    assert shape.host == HostShare(cpu_millis=10_240, memory=1280 * 2**20)
    assert shape.accepts("H100-80GB")
    assert not shape.accepts("A100-80GB")
    assert AskShape(mib=0).accepts("A100-80GB")
    assert AskShape.of(ask("T4", "ANY")) == AskShape(mib=0, share=False)


def test_counts_are_rounded_up_to_their_leading_bits() -> None:
    """What is small is exact."""
    assert [round_up(count, 3) for count in (0, 7, 8, 9, 1000, 1025)] == [0, 7, 8, 10, 1024, 1280]


def test_how_far_two_mixes_are_apart() -> None:
    """0 for the same, 2 for what has nothing in common."""
    assert distance({SMALL: 1.0}, {SMALL: 1.0}) == 0
    assert distance({SMALL: 1.0}, {LARGE: 1.0}) == 2
