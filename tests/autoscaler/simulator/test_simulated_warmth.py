"""What is parked in a simulation, and serves again."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_autoscaler.simulator.simulation import Simulation
from pilotlight_autoscaler.simulator.traffic.function_traffic import FunctionTraffic
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic
from pilotlight_placement.fleet.audit import check_integrity
from tests.autoscaler.simulator.simulated import recorded, simulation

CALLS = recorded((0.0, 2.0), (300.0, 2.0), (600.0, 2.0))
"""Each comes when the container of the one before is not needed any more."""


def figures(fleet: str = "CPU:4", warm_gib: float = 8.0, minutes: int = 15, **settings: Any) -> dict[str, float]:
    settings = {"gpu": "CPU" if fleet.startswith("CPU") else "ANY", "forecast": 0} | settings
    return simulation({"f": CALLS}, fleet, minutes=minutes, warm_gib=warm_gib, **settings).run().figures()


@pytest.mark.parametrize("fleet", ["CPU:4", "A100-80GB:2", "A100-80GB:1:mig"])
def test_what_is_parked_serves_the_next_call_within_milliseconds(fleet: str) -> None:
    """Its slice is free meanwhile, and its memory counts."""
    plain, warm = figures(fleet, warm_gib=0.0, vram_gib=5), figures(fleet, vram_gib=5)
    assert (plain["starts"], plain["unparks"], plain["parked_gib_s"]) == (3, 0, 0.0)
    assert (warm["starts"], warm["unparks"]) == (1, 2)
    assert plain["cold_start_rate"] == 1.0
    assert warm["cold_start_rate"] == pytest.approx(1 / 3)
    assert warm["wait_p50_s"] < 0.5 < plain["wait_p50_s"]
    assert warm["idle_gpu_s"] <= plain["idle_gpu_s"]
    assert warm["parked_gib_s"] == pytest.approx(900.0 - 3 * 62.0 - 20.0, abs=15.0)


@pytest.mark.parametrize(
    "settings", [{"load_s": 0.2}, {"parks": 0}, {"memory_gib": 9}, {"fleet": "A100-80GB:1:shared", "vram_gib": 5}]
)
def test_what_is_not_worth_it_or_cannot_be_ends(settings: dict[str, Any]) -> None:
    """A start that callers can bear, no hooks, more than there is, a share of a GPU."""
    found = figures(**settings)
    assert (found["unparks"], found["parked_gib_s"]) == (0, 0.0)


def test_what_nobody_calls_ends_at_its_time() -> None:
    """Ten minutes for each second of a start: nothing looks at it, and it is over all the same."""
    calls = recorded((0.0, 1.0), (1_500.0, 1.0))
    found = simulation({"f": calls}, "CPU:1", minutes=30, warm_gib=8.0, gpu="CPU", forecast=0, load_s=0.5).run()
    told = found.figures()
    assert (told["cold_start_rate"], told["unparks"], told["starts"]) == (1.0, 0, 2)
    assert told["parked_gib_s"] == pytest.approx(300.0 + (1_800.0 - 1_562.0), abs=5.0)
    assert list(found.timeline.parked)[:8] == [0, 1, 1, 1, 1, 1, 0, 0]


def test_the_memory_is_for_what_is_worth_most() -> None:
    """Of two functions the one whose start takes longer keeps its container."""
    calls = {"slow": recorded((0.0, 1.0), (900.0, 1.0)), "quick": recorded((100.0, 1.0), (900.0, 1.0))}
    made = simulation(dict(calls), "CPU:4", minutes=20, warm_gib=1.5, gpu="CPU", forecast=0)
    for run, load_s in zip(made.runs, (60.0, 2.0), strict=True):
        object.__setattr__(run.function, "load_s", load_s)
    made.run()
    assert [run.sums.unparks for run in made.runs] == [1, 0]


def test_a_gpu_that_another_tenant_needs_is_given_up() -> None:
    """What is parked there ends, and starts anew."""
    calls = {"a": recorded((0.0, 1.0), (600.0, 1.0)), "b": recorded((200.0, 1.0))}
    for tenant, unparks in (("tenant", 1), ("rival", 0)):
        made = simulation(dict(calls), "A100-80GB:1", minutes=15, warm_gib=8.0, forecast=0)
        other = made.runs[1].function
        object.__setattr__(other, "tenant", tenant)
        object.__setattr__(other, "ask", type(other.ask)(gpu=other.ask.gpu, function=other.key, tenant=tenant))
        made.run()
        assert made.runs[0].sums.unparks == unparks
        check_integrity(made.fleet.fleet)


def test_the_same_seed_finds_the_same_and_nothing_is_lost() -> None:
    """Of all patterns; fewer calls wait, and fewer are cold, than without a memory for what is parked."""

    def mixed(warm_gib: float) -> Simulation:
        mix = PatternMix(functions=25, minutes=60, calls_per_s=8.0, seed=4, parts=dict.fromkeys(PATTERNS, 1.0))
        drawn: dict[str, FunctionTraffic] = {**draw_traffic(mix, lambda _: 2.0)}
        return simulation(drawn, "CPU:64", minutes=60, warm_gib=warm_gib, gpu="CPU", forecast=0)

    first = mixed(16.0)
    found = first.run().figures()
    assert found == mixed(16.0).run().figures()
    check_integrity(first.fleet.fleet)
    assert len(first.fleet.fleet.held) == sum(run.size for run in first.runs)
    assert found["unparks"] > 0
    plain = mixed(0.0).run().figures()
    assert found["met_0.5s"] > plain["met_0.5s"]
    assert found["cold_start_rate"] < plain["cold_start_rate"]
    assert found["starts"] < plain["starts"]
