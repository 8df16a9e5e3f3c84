"""Totals only rise, and are of fixed size."""

from __future__ import annotations

from pilotlight_core.model.messages.seeing.tallies import SketchCounts
from pilotlight_gateway.tally.sketch import Sketch
from pilotlight_gateway.tally.tally import TallyCounts
from pilotlight_gateway.tally.tally_totals import TotalCounts


def test_minutes_become_buckets() -> None:
    counts = TallyCounts(1)
    for ms in (0.4, 20.0, 290.0, 310.0):
        counts.ended += 1
        counts.durations.add(ms)
    totals = TotalCounts()
    totals.add(counts.value(2))
    totals.add(counts.value(2))
    value = totals.value()
    assert (value.ended, sum(value.durations), round(value.durations_s, 4)) == (8, 8, 1.2408)
    below = dict(zip(totals.durations.bounds, value.durations, strict=False))
    assert (below[0.0005], below[0.025], below[0.3], below[0.5]) == (2, 2, 2, 2)


def test_versions_of_a_function_are_one() -> None:
    one, both = TotalCounts(), TotalCounts()
    one.durations.add(_sketch(5.0))
    one.failures["internal"] = 2
    one.batched, one.batch_sizes = 3, 12.0
    for _ in range(2):
        both.merge(one.value())
    value = both.value()
    assert (sum(value.durations), value.failures, value.batched, value.batch_sizes) == (2, {"internal": 4}, 6, 24.0)
    both.merge(TotalCounts().value())
    assert both.value() == value


def _sketch(ms: float) -> SketchCounts:
    sketch = Sketch()
    sketch.add(ms)
    return sketch.value()
