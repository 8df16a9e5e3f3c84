"""What is counted of all calls together."""

from __future__ import annotations

from pilotlight_core.model.spec import Batching
from pilotlight_gateway.tally.platform_totals import PlatformTotals
from tests.builders.specs import method


def test_batches_are_counted_by_size_and_by_how_full_they_were() -> None:
    """Of a function without batches nothing is full."""
    totals = PlatformTotals()
    totals.add_batch(method(batching=Batching(max_batch_size=16)), 4)
    totals.add_batch(method(), 1)
    assert (totals.batch_sizes.sum, sum(totals.batch_sizes.counts)) == (5.0, 2)
    assert (totals.fills.sum, sum(totals.fills.counts)) == (0.25, 1)


def test_only_tokens_are_named() -> None:
    """Whatever tenants call their units."""
    totals = PlatformTotals()
    totals.add_units({"prompt_tokens": 3, "secret project": 9})
    assert totals.tokens == {"prompt": 3, "completion": 0, "cached": 0}


def test_gaps_count_by_their_chunks() -> None:
    totals = PlatformTotals()
    totals.add_gaps([(20.0, 3), (500.0, 1)])
    assert (sum(totals.gaps.counts), round(totals.gaps.sum, 3)) == (4, 0.56)
