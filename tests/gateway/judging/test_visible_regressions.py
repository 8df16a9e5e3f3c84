"""What a planned rollout will see."""

from __future__ import annotations

import math

import pytest

from pilotlight_core.model.rollouts.rollout_record import RolloutTerms
from pilotlight_gateway.judging.visible_regressions import (
    calls_for_events,
    planned,
    smallest_amount,
    smallest_event_ratio,
    smallest_pair_ratio,
    visible_sentences,
)


def test_what_amounts_need_is_what_simulations_of_the_design_needed() -> None:
    """+20 % latency in 470 calls at 50/50; +3 % of a cost that nothing predicts in 26,000, at 10/90 in 72,000."""
    assert smallest_amount(470, 0.5, 0.5, 6) == pytest.approx(1.2, abs=0.01)
    assert smallest_amount(26_000, 0.5, 0.6, 6) == pytest.approx(1.03, abs=0.001)
    assert smallest_amount(72_000, 0.1, 0.6, 6) == pytest.approx(1.03, abs=0.001)
    assert smallest_amount(0, 0.5, 0.6, 6) == smallest_amount(3, 0.5, 0.6, 6) == math.inf


def test_what_pairs_need_is_what_simulations_of_the_design_needed() -> None:
    """140 at 10 % noise, 55 at 5 %; the first twenty are not judged."""
    assert smallest_pair_ratio(140, 0.1, 7) == pytest.approx(1.033, abs=0.002)
    assert smallest_pair_ratio(55, 0.05, 7) == pytest.approx(1.03, abs=0.002)
    assert smallest_pair_ratio(20, 0.05, 7) == math.inf


def test_what_events_need_is_what_the_formula_says() -> None:
    """Eleven times as many errors of one in a thousand: some 3,000 calls at 50/50."""
    assert calls_for_events(0.001, 11.0, 0.5, 6) == pytest.approx(3_239, rel=0.01)
    assert smallest_event_ratio(3_240, 0.001, 0.5, 6) == pytest.approx(11.0, rel=0.01)
    assert smallest_event_ratio(2, 0.001, 0.5, 6) == math.inf


def test_a_plan_counts_the_calls_of_each_step() -> None:
    """A step takes its time, or as long as its calls do."""
    terms = RolloutTerms(steps=(1_000, 5_000), every_s=3_600.0, calls=10)
    plan = planned(terms, calls_per_hour=1_000.0, shadows=True)

    assert plan.calls == pytest.approx(2 * 100 + 2 * 500)
    assert plan.rho == pytest.approx(0.5)
    assert plan.pairs == 300
    assert planned(RolloutTerms(), calls_per_hour=0.0, shadows=False).calls == 0.0


def test_sentences_say_it_before_the_rollout_starts() -> None:
    """Little traffic shows little; pairs show what live calls do not."""
    quiet = "\n".join(visible_sentences(RolloutTerms(), calls_per_hour=40.0, shadows=True))
    busy = "\n".join(visible_sentences(RolloutTerms(), calls_per_hour=1e5, shadows=False))
    none = "\n".join(visible_sentences(RolloutTerms(), calls_per_hour=0.0, shadows=False))

    assert "Pairs of shadows (300) show if it costs 3% more" in quiet
    assert "slower by 60%" in quiet
    assert "slower by 7%" in busy
    assert "There are no pairs of shadows" in busy
    assert "more than 10 times" in none
    assert "nearly every call fails" in none
