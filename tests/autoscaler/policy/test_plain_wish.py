"""Of a plain function numbers alone say the same as all that is seen of it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.policy.desired import desired
from pilotlight_autoscaler.policy.function_view import FunctionView, needed_by_calls
from pilotlight_autoscaler.policy.plain_wish import PlainVersion, PlainWish, plain_wish
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_autoscaler.policy.wish import ScalingRule, Warmth, Wish
from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.simulated_policy import SimulatedPolicy, view_of
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic
from tests.autoscaler.simulator.simulated import simulation
from tests.builders.specs import function_spec
from tests.example_counts import examples
from tests.variants import with_variants


class AskedTwice(SimulatedPolicy):
    """A policy that holds each of its wishes to `desired`, and what leaves to what would by all that is seen."""

    asked = drained = 0

    def wish(self, run: FunctionRun, at: float) -> PlainWish:
        found = super().wish(run, at)
        key, view = run.function.key, view_of(run, at)
        nobody = FunctionMemory(0.0, 0.0)
        expected = desired(FunctionView(name=key, versions={key: view}), self.memories.get(key) or nobody, at)
        holds_until = expected.look_again_at if expected.holds else at
        assert found == PlainWish(needed_by_calls(view), expected.count, expected.ahead, holds_until)
        self.asked += 1
        return found

    def leaving(self, run: FunctionRun, wish: PlainWish, at: float) -> set[str]:
        pace, size, key = deepcopy(self._pace), run.size, run.function.key
        found = super().leaving(run, wish, at)
        if found:
            said = Wish(
                count=wish.containers, tier=Warmth.READY, rule=ScalingRule.CALLS, because="", look_again_at=at,
                by_version={key: wish.containers},
            )  # fmt: skip
            assert size > wish.containers
            assert {each.id for each in pace.leaving(key, view_of(run, at), said, at)} == found
            assert pace == self._pace
            self.drained += 1
        return found


@pytest.mark.parametrize(
    "settings",
    with_variants(
        [
            {},
            {"max_containers": 2, "timeout_s": 30},
            {"slots": 4, "window_s": 300},
            {"min_containers": 1, "buffer_containers": 2},
            {"fleet": "A100-80GB:3"},
        ],
        2,
    ),
    ids=str,
)
def test_each_wish_of_a_simulation_is_that_of_the_controller(settings: dict[str, Any]) -> None:
    """For functions of all patterns, with room and without."""
    parts = dict.fromkeys(PATTERNS, 1.0)
    mix = PatternMix(functions=8, minutes=20, calls_per_s=12.0, seed=5, parts=parts)
    made = simulation(dict(draw_traffic(mix, lambda _: 2.0)), minutes=mix.minutes, **settings)
    policy = made.policy = AskedTwice()
    made.run()
    assert policy.asked > 100
    assert policy.drained or "fleet" in settings


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 8), st.floats(0.0, 20.0), st.floats(0.0, 30_000.0))
@examples(200)
def test_no_more_is_kept_than_there_is(size: int, running: int, slots: int, rate: float, service_ms: float) -> None:
    """And never less than calls need, within the ceiling."""
    seen = PlainVersion(function_spec(max_containers=20, max_inputs=slots))
    seen.size, seen.rate = size, rate
    seen.update(None, running, service_ms)
    wish = plain_wish(seen, FunctionMemory(60.0, 0.0), 60.0)
    assert wish.needed == min(seen.wanted, 20) <= wish.containers <= max(wish.needed, min(size, 20))
