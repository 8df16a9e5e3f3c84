"""The engine without a model."""

from __future__ import annotations

from math import sqrt

import pytest

from pilotlight_engine.engine_port import EngineDead, EngineRefusal, Sampling
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.sim.sim_engine import SimEngine, SimModel
from pilotlight_engine.sim.step_costs import StepCosts
from tests.engine.generations import request, run


def test_tokens_are_those_of_seed_and_position_whatever_else_runs() -> None:
    """Of a greedy sequence, those of its prompt."""
    sampled = [request(str(n), (5, n), 20, sampling=Sampling(seed=n % 3)) for n in range(6)]
    together = run(SimEngine(limits=SchedulerLimits(token_budget=4)), *sampled, request("greedy", (5, 5), 20)).tokens
    for each in sampled:
        assert together[each.id] == run(SimEngine(), each).tokens[each.id]

    assert together["0"] == together["3"]
    assert together["0"] != together["1"]
    assert together["greedy"] != run(SimEngine(), request("greedy", (5, 6), 20)).tokens["greedy"]


def test_time_is_an_argument() -> None:
    """A step ends when its costs are over."""
    engine = SimEngine(costs=StepCosts(step_ms=10, prefill_token_ms=1, decode_token_ms=2, stored_token_ms=0))
    engine.admit(request("a", range(5), 2))

    assert engine.step_at(100.0)[1] == pytest.approx(100.015)
    assert engine.step_at(200.0)[1] == pytest.approx(200.012)
    assert engine.step_at(300.0) == ([], 300.0)


def test_its_own_clock_can_be_made_real() -> None:
    """By whatever waits."""
    waits: list[float] = []
    engine = SimEngine(costs=StepCosts(step_ms=10, prefill_token_ms=0, stored_token_ms=0), wait=waits.append)
    run(engine, request("a", range(5), 1))
    engine.step()

    assert waits == [pytest.approx(0.01)]
    assert engine.now == pytest.approx(0.01)


def test_logprobs_are_there_if_asked_for() -> None:
    """As many as asked for, the drawn one first."""
    out = run(SimEngine(), request("a", logprobs=3)).outs["a"][0]

    assert out.logprob == -0.5
    assert [token for token, _ in out.top] == [(out.token + n) % 512 for n in range(3)]


def test_a_lost_device_says_so() -> None:
    """As the real one does."""
    engine = SimEngine()
    engine.admit(request("a"))
    engine.dead = True
    with pytest.raises(EngineDead):
        engine.step()


def test_vectors_have_length_one_and_depend_on_the_input() -> None:
    """What is no token is refused, as is nothing."""
    engine = SimEngine(SimModel(vocabulary=10, max_sequence=4))
    one, same, other = engine.embed([(1, 2), (1, 2), (2, 1)])

    assert one == same != other
    assert sqrt(sum(value * value for value in one)) == pytest.approx(1.0)
    for wrong in ((), (1,) * 5, (10,)):
        with pytest.raises(EngineRefusal):
            engine.embed([wrong])
