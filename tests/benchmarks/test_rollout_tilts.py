"""Tilted coins: what they count is what plain runs would, by fewer of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rollout_tilts import PLAIN, TILTS, Tilt, TiltedCoins, likelihood_of
from benchmarks.rollout_traffic import SAME, Luck, Traffic, TrafficRun
from pilotlight_core.model.rollouts.rollout_record import Arm

TRAFFIC = Traffic(rho=0.2, errors=0.05)


def sides(seed: int, calls: int = 30) -> tuple[TiltedCoins, np.ndarray, np.ndarray]:
    """The coins of a run, which calls the canary had, and which of them failed."""
    generator = np.random.default_rng((9, seed))
    coins, run = TiltedCoins(TRAFFIC, generator), TrafficRun(TRAFFIC, SAME, calls, generator)
    compared = list(run.compared(coins.chances))
    assert {call.rho for call in compared} == {0.2}
    canary = np.array([call.arm == Arm.CANARY for call in compared])
    return coins, canary, np.array([bool(call.code) for call in compared])


@pytest.mark.variant
def test_weights_are_one_in_the_mean() -> None:
    """Whatever the coin: so a mean over runs is of plain ones."""
    weights = [coins.weight(canary) for coins, canary, _ in map(sides, range(2_000))]

    assert np.mean(weights) == pytest.approx(1.0, abs=0.05)
    assert max(weights) <= 1.0 / PLAIN


def test_a_rare_event_is_as_likely_as_it_is() -> None:
    """Of thirty calls three fail or more, all of them the canary's: by the plain coin, one run of 915."""
    weights, found = [], 0
    for seed in range(3_000):
        coins, canary, failed = sides(seed)
        happened = failed.sum() >= 3 and bool(canary[failed].all())
        found += happened
        weights.append(coins.weight(canary) if happened else 0.0)
    likely = likelihood_of(weights)

    expected = sum(
        float(np.prod([(30 - k) / (k + 1) for k in range(n)])) * 0.05**n * 0.95 ** (30 - n) * 0.2**n
        for n in range(3, 12)
    )
    assert likely.chance == pytest.approx(expected, rel=0.35)
    assert abs(likely.chance - expected) < 4.0 * likely.error
    assert found > 3.0 * 3_000 * expected
    assert likely.chance < likely.at_most < 3.0 * expected


@pytest.mark.parametrize("tilt", TILTS)
def test_a_coin_leans_towards_what_is_worse(tilt: Tilt) -> None:
    """For good calls it leans the other way, or not at all; it is always a chance."""
    luck = Luck(
        slow=np.array([4.0, -4.0]), dear=np.array([4.0, -4.0]), size=np.zeros(2), fault=np.array([0.5, 0.5]),
        level=np.ones(2),
    )  # fmt: skip
    worse = luck._replace(fault=np.array([0.0, 0.5])) if tilt.kind == "failed" else luck
    bad, good = tilt.chances(TRAFFIC, worse, np.full(2, 0.2))

    assert 0.0 < good <= 0.2 < bad < 1.0
