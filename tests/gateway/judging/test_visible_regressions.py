"""What a rollout can see, said before it starts."""

import math

import pytest

from pilotlight_core.model.rollouts.rollout_record import RolloutTerms
from pilotlight_gateway.judging.visible_regressions import calls_to_see, pairs_to_see, visible_sentences


def test_the_formulas_of_the_design() -> None:
    assert calls_to_see(0.03, 0.6, 0.5, 6, 0.0) == pytest.approx(63 * (0.6 / math.log(1.03)) ** 2, rel=0.02)
    assert calls_to_see(0.03, 0.6, 0.1, 6, 0.0) == pytest.approx(176 * (0.6 / math.log(1.03)) ** 2, rel=0.02)
    assert pairs_to_see(0.03, 0.1, 0.0) == pytest.approx(157, rel=0.02)
    assert calls_to_see(0.03, 0.6, 0.5, 6, 0.05) == math.inf
    assert pairs_to_see(0.005) == math.inf


def test_what_the_traffic_allows_is_said_in_words() -> None:
    latency, cost, pairs = visible_sentences(RolloutTerms(), 10_000.0, has_pairs=True)
    assert latency.startswith("latency: +10%")
    assert "+100% after" in cost
    assert "cost +3 % shows after about" in pairs


def test_a_function_that_nobody_calls_is_said_to_end_undecided() -> None:
    (only,) = visible_sentences(RolloutTerms(), 0.0, has_pairs=False)
    assert "undecided" in only
