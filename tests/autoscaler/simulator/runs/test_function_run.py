"""A function of a simulation: when its policy is asked, and how it changes between calls and counts."""

from __future__ import annotations

import math
from random import Random

import pytest

from pilotlight_autoscaler.observations.call_rate import CallRate
from pilotlight_autoscaler.simulator.runs.call_steps import move_by_calls
from pilotlight_autoscaler.simulator.runs.function_run import AGAIN_S, PASS_S, RATE_SEEN_S, FunctionRun
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.traffic.function_traffic import CountedCalls
from tests.autoscaler.simulator.simulated import recorded, run_of


def with_containers(run: FunctionRun, count: int, at: float = 0.0) -> FunctionRun:
    """Containers that are ready at once."""
    for number in range(count):
        run.begin(SimulatedContainer(f"c{number}", number, at, 0.0))
    return run


def test_the_policy_is_asked_at_once_when_calls_begin_to_wait() -> None:
    """For more calls a pass later, and again after a while if nothing changes."""
    run = run_of(recorded((1.0, 2.0), (1.1, 2.0)))
    run.begin_minute(0)
    move_by_calls(run, 60.0)
    assert (run.at, run.queued) == (1.0, 1)

    run.on_looked(1.0, 0)
    move_by_calls(run, 60.0)
    assert (run.at, run.queued) == (1.0 + PASS_S, 2)

    run.on_looked(run.at, run.size)
    move_by_calls(run, 60.0)
    assert run.at == 1.0 + PASS_S + AGAIN_S


def test_less_than_was_asked_about_is_no_question() -> None:
    """One call after the other in a container that is there: only its window is one."""
    run = with_containers(run_of(recorded((1.0, 2.0), (5.0, 2.0), (9.0, 2.0)), window_s=30), 1)
    run.begin_minute(0)
    move_by_calls(run, 60.0)
    assert (run.at, run.running) == (1.0 + 0.0, 1)  # more runs than ever before
    run.drain_at = math.inf
    run.on_looked(run.at, run.size)
    move_by_calls(run, 60.0)
    assert (run.at, run.running, run.sums.calls) == (3.0 + 30.0, 0, 3)


def test_the_rate_of_arrivals_is_that_of_a_controller() -> None:
    """Whose homes tell it four times a second what has come, call by call and by counts."""
    dice, at, times = Random(3), 0.0, []
    while at < 60.0:
        at += dice.expovariate(4.0)
        times.append(at)
    run, known = with_containers(run_of(recorded(*((at, 0.1) for at in times)), max_containers=10), 10), CallRate()
    counted = run_of(CountedCalls({0: 1}, 1.0, "s"))
    run.begin_minute(0)
    run.look_at = math.inf
    for step in range(1, 236):
        at, before = step / 4.0, (step - 1) / 4.0
        arrivals = sum(before < each <= at for each in times)
        known.count(arrivals, at)
        counted.on_arrivals(arrivals, at)
        while run.at < at:
            run.look_at = at
            move_by_calls(run, 60.0)
        if step > 4 * RATE_SEEN_S:
            assert run.rate(at) == pytest.approx(known.value, rel=0.1, abs=0.3)
            assert counted.rate(at) == pytest.approx(known.value, rel=0.01, abs=0.01)
    before = run.rate(58.75)
    run.begin_minute(1)
    assert run.rate(60.0) == pytest.approx(before * math.exp(-1.25 / 2.0), rel=0.5)
    assert run.rate(90.0) < 1e-4


def test_from_calls_to_counts_and_back_nothing_is_lost() -> None:
    """What runs goes on, and busy containers stay busy."""
    run = with_containers(run_of(CountedCalls({0: 300, 1: 3_000, 2: 3}, 1.0, "s"), max_containers=100), 40)
    run.begin_minute(0)
    while run.at < 60.0:
        run.on_looked(run.at, run.size)
        move_by_calls(run, 60.0)
    running, queued = run.running, run.queued

    run.begin_minute(1)
    assert (run.by_counts, run.running, run.queued, run.left) == (True, running, queued, 3_000)
    assert len(run.busy_stack) == running
    run.left = 0
    run.at = 120.0
    run.begin_minute(2)
    assert (run.by_counts, run.running, len(run.ends), len(run.open)) == (False, running, running, 40 - running)


def test_what_goes_was_idle_and_is_nobodys_choice_any_more() -> None:
    """The others keep their order."""
    run = with_containers(run_of(recorded()), 3)
    run.begin_minute(0)
    move_by_calls(run, 1.0)

    (gone,) = run.remove({"c0"})

    assert gone.is_gone
    assert [each.id for each in run.ready] == ["c1", "c2"]
    assert [each.id for _, each in run.open] == ["c1", "c2"]
    assert run.size == 2


def test_where_there_is_enough_the_policy_only_hears_what_runs() -> None:
    """Until calls wait, were turned away, or need more; it hears again of more than it knows of."""
    run = with_containers(run_of(recorded((1.0, 9.0), (1.1, 9.0), (2.0, 9.0)), buffer_containers=1), 3)
    run.begin_minute(0)
    assert run.has_enough
    move_by_calls(run, 60.0)
    assert (run.at, run.running, run.has_enough) == (1.0, 1, True)

    run.on_known(1.0, 1)
    move_by_calls(run, 60.0)
    assert (run.at, run.running, run.has_enough) == (1.0 + PASS_S, 2, True)

    run.on_known(run.at, 2)
    move_by_calls(run, 60.0)
    assert (run.at, run.running, run.has_enough) == (2.0, 3, False)  # one beyond the three is wanted
