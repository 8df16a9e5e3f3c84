"""What is known of a function."""

from __future__ import annotations

import pytest

from pilotlight_core.model.rollouts.rollout_record import RolloutTerms
from pilotlight_gateway.judging.evidence import start
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from tests.builders.compared import FUNCTION, compared_history, rollout_of


def evidence_of(terms: RolloutTerms) -> FunctionEvidence:
    return start(rollout_of(terms), history=compared_history(), shadowed=(FUNCTION,)).functions[FUNCTION]


def test_its_value_is_the_weighted_mean_of_its_guards() -> None:
    """What weighs nothing is shown, and does not count."""
    evidence = evidence_of(RolloutTerms(weights={"cost": 3.0}))
    evidence.amounts["cost"].e = 201.0
    evidence.events["answers"].e = 1e9

    whole = sum(evidence.weights.values())
    assert evidence.value() == pytest.approx(1.0 + 3.0 * 200.0 / whole)
    assert evidence.guards()["answers"] == 1e9
    assert list(evidence.guards()) == list(evidence.weights)


def test_no_weight_at_all_says_nothing() -> None:
    """Not even of a division by 0."""
    evidence = evidence_of(RolloutTerms())
    evidence.weights, evidence.whole = dict.fromkeys(evidence.weights, 0.0), 0.0

    assert evidence.value() == 1.0


def test_it_says_from_when_on_calls_are_slow() -> None:
    """By what it measures against now; of strata with too few calls nothing."""
    limits = evidence_of(RolloutTerms(tolerance=0.1)).slow_limits()

    assert limits.tolerance == 0.1
    assert [name for name in limits.usual if "|" not in name] == [" sim"]
