"""A container goes only if the others carry its calls within 80 % of the service level."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.consolidation import carries, least_kept, wait_s, without_needed
from pilotlight_autoscaler.policy.scaling_policy import VersionSpeed, VersionView
from pilotlight_core.model.spec import SLO
from tests.autoscaler.builders import demand
from tests.builders.nodes import container
from tests.builders.specs import function_spec


def view(
    size: int, *, rate: float, service_ms: float = 0.0, speeds: tuple[float, ...] = (), **options: Any
) -> VersionView:
    return VersionView(
        spec=function_spec(**options), deployed=True, demand=demand(service_ms=service_ms), rate=rate,
        containers=tuple(container(f"c{n}") for n in range(size)),
        speed=VersionSpeed(there=speeds, next=max(speeds)) if speeds else None,
    )  # fmt: skip


@pytest.mark.parametrize(("rate", "kept"), [(0.0, 1), (8.0, 1), (8.1, 2), (16.0, 2), (24.1, 4), (99.0, 4)])
def test_the_others_have_their_slots_in_use_at_four_fifths_at_most(rate: float, kept: int) -> None:
    """Four containers of ten slots, whose calls take a second; however many arrive, no more are kept than there are."""
    assert least_kept(view(4, rate=rate, service_ms=1_000.0, max_inputs=10), 1) == kept


def test_nothing_is_kept_by_what_is_not_known() -> None:
    """No call has ended yet, or none arrives."""
    assert least_kept(view(4, rate=50.0), 1) == 1
    assert least_kept(view(4, rate=0.0, service_ms=500.0), 0) == 0


def test_a_service_level_asks_for_more_than_slots() -> None:
    """Calls of 100 ms that may take 150 ms, 80 % of it with one fewer: waits have to be short."""
    slow: dict[str, Any] = {"rate": 39.0, "service_ms": 100.0, "max_inputs": 1}
    assert least_kept(view(12, **slow), 1) == 5
    assert least_kept(view(12, **slow, slo=SLO(p95_ms=150.0)), 1) == 8
    assert least_kept(view(12, **slow, slo=SLO(p95_ms=110.0)), 1) == 12  # which no number of them keeps


def test_with_a_curve_the_throughput_within_the_level_counts() -> None:
    """Used to 80 %; and which container goes makes a difference."""
    seen = view(3, rate=14.0, speeds=(10.0, 10.0, 5.0), slo=SLO(p95_ms=100.0))
    assert least_kept(seen, 0) == 2
    assert not carries(seen, 1)

    assert [each.id for each in without_needed(seen, seen.containers)] == ["c2"]
    assert without_needed(view(2, rate=14.0, speeds=(10.0, 5.0)), seen.containers[:2]) == []


def test_without_a_curve_as_many_go_as_the_others_can_do_without() -> None:
    """The first of them."""
    seen = view(5, rate=20.0, service_ms=1_000.0, max_inputs=10)
    assert [each.id for each in without_needed(seen, seen.containers)] == ["c0", "c1"]


def test_a_wait_is_that_of_erlang() -> None:
    """One server at half load: P(wait) = 1/2, and its quantile is service / (1 - load) * ln(10)."""
    assert wait_s(0.5, 1, 1.0) == pytest.approx(2.0 * 2.302585, rel=1e-6)
    assert wait_s(0.5, 8, 1.0) == 0.0


@given(st.floats(0.1, 200.0), st.integers(1, 30), st.floats(1.0, 3_000.0), st.sampled_from([None, 100.0, 2_000.0]))
def test_more_containers_carry_what_fewer_carry(
    rate: float, size: int, service_ms: float, p95_ms: float | None
) -> None:
    """And what is kept carries the calls, or is all that there is."""
    seen = view(size, rate=rate, service_ms=service_ms, max_inputs=4, slo=SLO(p95_ms=p95_ms))
    ways = [carries(seen, count) for count in range(size + 1)]

    assert ways == sorted(ways)
    kept = least_kept(seen, 0)
    assert kept == size or (carries(seen, kept) and not (kept and carries(seen, kept - 1)))
