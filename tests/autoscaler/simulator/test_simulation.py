"""The whole simulation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotlight_autoscaler.simulator.simulation import Simulation
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic
from pilotlight_placement.fleet.audit import check_integrity
from tests.autoscaler.simulator.simulated import recorded, simulation


def mixed() -> Simulation:
    """Functions of all patterns on too few GPUs."""
    mix = PatternMix(functions=25, minutes=90, calls_per_s=8.0, seed=4, parts=dict.fromkeys(PATTERNS, 1.0))
    return simulation(dict(draw_traffic(mix, lambda _: 2.0)), "A100-80GB:12", minutes=90)


def test_a_call_after_the_window_is_cold() -> None:
    """Of five calls four find nothing, if their past foretells nothing; a window of five minutes spares one of them."""
    calls = {"classify": recorded(*((at, 2.0) for at in (0.0, 1.0, 40.0, 300.0))), "embed": recorded((30.0, 0.5))}
    short, long = (
        simulation(dict(calls), minutes=6, window_s=window, forecast=0).run().figures() for window in (60, 300)
    )
    assert (short["cold_start_rate"], long["cold_start_rate"]) == (0.8, 0.6)
    assert (short["starts"], long["starts"]) == (4, 3)
    assert long["idle_gpu_s"] > short["idle_gpu_s"]


def test_the_last_container_stays_for_its_own_window() -> None:
    """And the one before it for that of all: two that were used at once end after one minute and after three."""
    calls = recorded((0.0, 2.0), (0.0, 2.0))
    found = simulation({"f": calls}, minutes=10, window_s=60, zero_window_s=180, forecast=0).run()
    assert found.figures()["idle_gpu_s"] == pytest.approx(60.0 + 180.0, abs=5.0)
    assert found.runs[0].sums.drains == 2


def test_containers_stay_that_arriving_calls_need() -> None:
    """Four hold what runs, but four calls a second of 0.9 s would use them to 90 %: the fifth stays."""
    calls = [(number / 4.0, 0.9) for number in range(2_400)]
    found = simulation({"f": recorded(*calls)}, minutes=15, window_s=30, forecast=0)
    sizes = {}

    def look(at: float) -> None:
        sizes[int(at)] = found.runs[0].size

    found.run(look)
    assert {size for at, size in sizes.items() if 400 < at < 590} == {5}
    assert found.runs[0].size == 0


def test_floors_are_there_from_the_beginning() -> None:
    """And stay."""
    found = simulation({"f": recorded((100.0, 1.0))}, minutes=30, min_containers=2, max_containers=4).run()
    assert (found.figures()["cold_start_rate"], found.runs[0].size) == (0.0, 2)


def test_the_same_seed_finds_the_same() -> None:
    """To the last figure; the fleet adds up, and its time is spent."""
    first, again = mixed(), mixed()
    result = first.run()

    figures = result.figures()

    assert figures == again.run().figures()
    check_integrity(first.fleet.fleet)
    assert len(first.fleet.fleet.held) == sum(run.size for run in result.runs)
    spent = figures["busy_gpu_s"] + figures["loading_gpu_s"] + figures["idle_gpu_s"]
    assert 0 < spent <= 12 * 90 * 60
    sums = result.totals()
    assert sums.waits.calls + sums.refused + sums.late + sum(run.queued for run in result.runs) == sums.calls


def test_no_function_has_more_than_it_may() -> None:
    """Nor fewer than none."""
    running = mixed()
    most = {run.function.name: run.function.spec.max_containers for run in running.runs}

    def check(_: float) -> None:
        assert all(run.size <= most[run.function.name] for run in running.runs)

    running.run(check)


def test_an_interrupted_one_has_what_was_found_so_far() -> None:
    """As of the instant at which it ended."""

    def interrupt_after(seconds: float) -> Callable[[float], None]:
        def check(at: float) -> None:
            if at >= seconds:
                raise KeyboardInterrupt

        return check

    running = mixed()
    with pytest.raises(KeyboardInterrupt):
        running.run(interrupt_after(1_800.0))
    assert 1_800.0 <= running.result.at < 1_900.0
    assert 0 < running.result.figures()["calls"] < mixed().run().figures()["calls"]
