"""The consistent rule of sampling."""

from __future__ import annotations

import pytest

from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE, context_within, own_trace_id
from pilotlight_core.model.tracing.trace_sampling import UNSAMPLED, TraceSampler

CALLS = [new_call_id("local", 1, 1_800_000_000.0) for _ in range(2_000)]


@pytest.mark.parametrize(("ratio", "threshold"), [(1.0, "0"), (0.5, "8"), (0.25, "c"), (0.01, "fd70a3d70a3d7")])
def test_the_threshold_is_written_as_opentelemetry_has_it(ratio: float, threshold: str) -> None:
    """Of its own table: 25 % is `c`; without zeros at the end."""
    assert TraceSampler(ratio).threshold.startswith(threshold)


def test_about_so_many_calls_are_taken() -> None:
    """All of a ratio of 1, none of 0."""
    assert 400 < sum(bool(TraceSampler(0.25).context_of(call)) for call in CALLS) < 600
    assert all(TraceSampler(1.0).context_of(call) for call in CALLS)
    assert not any(UNSAMPLED.context_of(call) for call in CALLS)


def test_what_a_small_ratio_takes_a_larger_one_takes_too() -> None:
    """So samplers with different ratios have whole traces between them."""
    few, many = TraceSampler(0.1), TraceSampler(0.5)
    assert all(many.context_of(call) for call in CALLS if few.context_of(call))


def test_a_taken_call_is_below_its_own_root_and_sampled() -> None:
    """And the rule holds of its trace's id as of its own."""
    sampler = TraceSampler(0.25)
    for call in CALLS:
        came = sampler.context_of(call)
        assert came in ("", SAMPLED_HERE)
        assert sampler.takes(own_trace_id(call)) is bool(came)
        context = context_within(call, came)
        assert (context.sampled, context.trace_id) == (bool(came), own_trace_id(call))
