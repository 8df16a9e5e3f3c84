"""Strata: what a call is measured against."""

from __future__ import annotations

import random
from typing import Any

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.usual.strata import MOST_SAMPLES, MOST_STRATA, Strata, is_measured, names_of
from tests.builders.compared import compared_call


def warm(count: int, seed: int = 1, **fields: Any) -> list[ComparedCall]:
    draw = random.Random(seed)
    return [compared_call(execute_ms=100.0 * 2.0 ** draw.gauss(0.0, 0.5), **fields) for _ in range(count)]


def test_nothing_is_measured_before_fifty_calls_of_the_old_version() -> None:
    """And what is known then follows from those calls alone."""
    strata, call = Strata(), compared_call()
    for learnt in warm(49):
        strata.learn(learnt)
    assert strata.of(call) is None
    strata.learn(compared_call())

    stratum = strata.of(call)
    assert stratum is not None
    assert stratum.latency is not None


def test_what_a_history_of_two_hundred_calls_says_stays() -> None:
    """Calls during the rollout change nothing of it."""
    strata = Strata()
    strata.settle(warm(250))
    before = strata.of(compared_call())
    assert before is not None
    level = before.latency
    for learnt in warm(900, seed=2):
        strata.learn(learnt)

    assert before.is_settled
    after = strata.of(compared_call())
    assert after is not None
    assert after.latency == level
    assert strata.samples == 0


def test_a_call_is_measured_against_the_finest_stratum_of_which_enough_is_known() -> None:
    """Large inputs among large ones, a large tenant's among its own."""
    strata = Strata()
    small, large = warm(300, body_bytes=10), warm(300, body_bytes=10_000)
    own = [compared_call(execute_ms=900.0, body_bytes=10, tenant="big") for _ in range(300)]
    strata.settle([*small, *large, *own])

    assert names_of(compared_call(body_bytes=10, tenant="big")) == (" sim|3|big", " sim|3", " sim")
    assert strata.of(compared_call(body_bytes=10, tenant="big")) is strata.known[" sim|3|big"]
    assert strata.of(compared_call(body_bytes=10, tenant="new")) is strata.known[" sim|3"]
    assert strata.of(compared_call(body_bytes=10_000, tenant="new")) is strata.known[" sim|13"]
    assert strata.of(compared_call(body_bytes=99)) is strata.known[" sim"]
    assert strata.of(compared_call(gpu_type="other")) is None


def test_types_of_gpus_and_methods_are_kept_apart() -> None:
    """A slower type is no slower version."""
    assert len({names_of(compared_call(gpu_type=gpu, method=method))[2] for gpu in "ab" for method in "xy"}) == 4


def test_what_is_kept_is_bounded() -> None:
    """Whatever tenants, sizes and types there are."""
    strata = Strata()
    strata.settle([compared_call(body_bytes=2**size, tenant=f"t{n}") for size in range(40) for n in range(20)])
    for size in range(40):
        for gpu in range(40):
            for learnt in warm(10, body_bytes=2**size, gpu_type=f"gpu{gpu}"):
                strata.learn(learnt)

    assert len(strata.known) <= MOST_STRATA
    assert strata.samples <= MOST_SAMPLES + 1
    assert sum(len(stratum.sizes) for stratum in strata.known.values()) == strata.samples


def test_a_function_without_a_gpu_has_no_usual_cost() -> None:
    """Its times are compared."""
    strata = Strata()
    strata.settle(warm(250, gpu_ns=0))
    stratum = strata.of(compared_call(gpu_ns=0))

    assert stratum is not None
    assert stratum.latency is not None
    assert stratum.cost is None


def test_only_calls_that_ended_well_say_how_fast_a_version_is() -> None:
    """A failure may be fast."""
    assert is_measured(compared_call())
    assert not is_measured(compared_call(code="function_raised"))
    assert not is_measured(compared_call(execute_ms=0.0))
