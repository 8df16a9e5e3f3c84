"""The policy of a simulation is the controller's, asked about what the controller would see."""

from __future__ import annotations

import math

import pytest

from pilotlight_autoscaler.policy import scaling_policy
from pilotlight_autoscaler.simulator.runs.call_steps import move_by_calls
from pilotlight_autoscaler.simulator.simulated_policy import SimulatedPolicy, changed_constants, view_of
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic
from pilotlight_core.model.messages.node_messages import ContainerState
from tests.autoscaler.simulator.runs.test_function_run import with_containers
from tests.autoscaler.simulator.simulated import recorded, run_of, simulation
from tests.variants import with_variants


def test_the_policy_sees_containers_and_demand() -> None:
    """As reports and homes tell them."""
    run = with_containers(run_of(recorded((1.0, 9.0), (1.0, 9.0), (2.0, 9.0)), max_containers=10), 2)
    run.begin_minute(0)
    while run.at < 5.0:
        run.on_looked(run.at, run.size)
        run.look_at = math.inf
        move_by_calls(run, 5.0)

    view = view_of(run, 5.0)

    assert view.demand is not None
    assert (view.demand.queued, view.demand.running, view.demand.oldest_ms) == (1, 2, 3_000.0)
    assert view.demand.oldest_run_ms == 4_000.0
    assert [(each.state, each.running, each.age_s) for each in view.containers] == [(ContainerState.READY, 1, 5.0)] * 2
    assert SimulatedPolicy().wish(run, 5.0).containers == scaling_policy.wanted_by_demand(view) == 3


def test_constants_change_within_the_block_alone() -> None:
    """And only known ones, above 0."""
    before = scaling_policy.WAIT_TARGET_S
    with changed_constants({"WAIT_TARGET_S": 9.0}):
        assert scaling_policy.WAIT_TARGET_S == 9.0
    assert before == scaling_policy.WAIT_TARGET_S
    for values in ({"NO_SUCH": 1.0}, {"WAIT_TARGET_S": -1.0}):
        with pytest.raises(ValueError, match="expected"), changed_constants(values):
            pass


def test_idle_containers_give_way_to_calls_of_others() -> None:
    """On a full fleet the longest idle one ends for a function that waits."""
    first, second = recorded((0.0, 1.0)), recorded((40.0, 1.0))
    found = simulation({"a": first, "b": second}, "A100-80GB:1", window_s=3_600, minutes=3).run()
    a, b = found.runs
    assert (a.sums.drains, b.sums.starts, b.sums.waits.calls) == (1, 1, 1)
    assert b.sums.waits.total_s == pytest.approx(20.0, abs=0.1)


@pytest.mark.parametrize("pattern", with_variants(PATTERNS, 2))
def test_asked_seldom_it_decides_as_if_asked_each_second(pattern: str) -> None:
    """Calls, containers and what is remembered agree, but for the instants of single passes."""
    mix = PatternMix(functions=3, minutes=90, calls_per_s=0.5, seed=3, parts={pattern: 1.0})
    seldom, often = (
        simulation(dict(draw_traffic(mix, lambda _: 2.0)), minutes=mix.minutes, max_containers=50) for _ in range(2)
    )
    often.every_s = 1.0
    found, expected = seldom.run().figures(), often.run().figures()
    assert found["calls"] == expected["calls"]
    for name, apart in (("starts", 0.06), ("idle_gpu_s", 0.03), ("busy_gpu_s", 0.01)):
        assert found[name] == pytest.approx(expected[name], rel=apart, abs=3), name
    assert found["cold_start_rate"] == pytest.approx(expected["cold_start_rate"], rel=0.05, abs=0.002)
    known = [made.policy.memories.take_changed(10) for made in (seldom, often)]
    assert known[0].keys() == known[1].keys()
