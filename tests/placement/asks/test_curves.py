"""Throughput curves."""

from __future__ import annotations

import pytest

from pilotlight_placement.asks.curves import Curves, ThroughputPoint, whole

CURVES = Curves({
    ("T4", whole()): (
        ThroughputPoint(batch=1, throughput=50, p95_ms=20), ThroughputPoint(batch=8, throughput=200, p95_ms=40),
        ThroughputPoint(batch=32, throughput=320, p95_ms=100),
    ),
})  # fmt: skip


@pytest.mark.parametrize(("slo_ms", "batch"), [(None, 32), (75.0, 8), (40.0, 8), (20.0, 1)])
def test_the_best_batch_is_the_fastest_within_the_service_level(slo_ms: float | None, batch: int) -> None:
    """Without one, the fastest of all."""
    found = CURVES.best("T4", "whole", slo_ms)

    assert found is not None
    assert found.batch == batch


def test_too_slow_and_never_measured_are_told_apart() -> None:
    """Both have no best point; only one is known."""
    assert CURVES.best("T4", "whole", 5.0) is None
    assert CURVES.knows("T4", "whole")
    assert not CURVES.knows("T4", "3g")
    assert whole(4) == "whole:4"


def test_a_point_is_positive() -> None:
    """Nonsense is refused where it is made."""
    with pytest.raises(ValueError, match="positive"):
        ThroughputPoint(batch=1, throughput=0, p95_ms=1)
