"""A batch is one observation."""

from __future__ import annotations

import pytest

from pilotlight_gateway.judging.batch_observations import MeasuredAmount, PendingBatch


def test_a_batch_says_the_means_of_what_its_calls_say() -> None:
    """Of each amount for itself."""
    batch = PendingBatch(2, canary=True, rho=0.5, at=0.0)
    batch.add([MeasuredAmount("cost", 0.2, 0.1, 1.0), MeasuredAmount("latency", 1.0, 1.5, 1.5)])
    batch.add([MeasuredAmount("cost", 0.4, 0.3, 2.0)])

    means = {each.guard: each for each in batch.means()}
    assert means["cost"][1:] == pytest.approx((0.3, 0.2, 1.5))
    assert means["latency"][1:] == pytest.approx((1.0, 1.5, 1.5))
