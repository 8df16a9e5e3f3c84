"""Verdicts in words."""

from __future__ import annotations

from pilotlight_gateway.judging.bets import SplitBet
from pilotlight_gateway.judging.evidence import begin_evidence, fold
from pilotlight_gateway.judging.verdicts import verdict_of
from tests.gateway.judging.compared import a_rollout, compared
from tests.gateway.judging.test_evidence import seen, traffic


def test_no_data_is_never_success() -> None:
    verdict = verdict_of(begin_evidence(a_rollout()), 5.0)
    assert (verdict.word, verdict.evidence, verdict.verified_within, verdict.at) == ("undecided", 1.0, {}, 5.0)
    assert "Without calls nothing can be said." in verdict.sentences


def test_what_is_worse_is_said_with_its_reason_and_by_how_much() -> None:
    verdict = verdict_of(seen(traffic(3, 1_100, 0.5, slower=1.3)), 5.0)
    assert verdict.word == "regressed"
    assert verdict.evidence >= 100
    assert max(verdict.guards, key=lambda one: verdict.guards[one]) in ("latency", "slow")
    text = " ".join(verdict.sentences)
    assert "calls of the new version were compared with" in text
    assert "longer and cost" in text
    assert verdict.calls["canary"] + verdict.calls["twin"] == 1_100


def test_what_is_proven_is_said_for_each_guard() -> None:
    verdict = verdict_of(seen(traffic(5, 1_500, 0.5)), 5.0)
    assert verdict.word == "verified"
    assert verdict.verified_within.keys() == {"latency", "cost"}
    assert any("It is proven that latency is less than" in one for one in verdict.sentences)


def test_failures_are_counted_by_side() -> None:
    evidence = begin_evidence(a_rollout())
    fold(evidence, 1, [compared(code="function_raised", container="", call_id=f"c{n}") for n in range(3)])
    verdict = verdict_of(evidence, 0.0)
    assert verdict.word == "regressed"
    assert any("3 of 3 calls of the new version failed" in one for one in verdict.sentences)


def test_a_wrong_split_makes_everything_invalid() -> None:
    evidence = begin_evidence(a_rollout())
    evidence.split = SplitBet()
    fold(evidence, 1, [compared("canary", rho=0.1, call_id=f"c{n}") for n in range(60)])
    verdict = verdict_of(evidence, 0.0)
    assert verdict.word == "invalid"
    assert any("not split as they should" in one for one in verdict.sentences)
