"""Which guards a function has."""

from __future__ import annotations

from pilotlight_core.model.rollouts.rollout_record import GuardTerms, RolloutTerms, Sticky
from pilotlight_gateway.judging.guards.guard_set import amount_guards, event_guards, weights_of


def test_every_function_has_the_six_and_others_have_more() -> None:
    """Tokens and pairs where there are any."""
    assert list(weights_of(RolloutTerms(), streams=False, pairs=False))[:6] == [
        "crash", "errors", "slow", "latency", "cost", "dear",
    ]  # fmt: skip
    assert {"ttft", "itl", "pairs"} <= set(weights_of(RolloutTerms(), streams=True, pairs=True))


def test_weights_are_as_was_asked_for() -> None:
    """A weight is never negative; a custom guard joins with its own."""
    terms = RolloutTerms(weights={"cost": 4.0, "slow": -1.0}, guards=(GuardTerms(name="bad", kind="event", field="x"),))
    weights = weights_of(terms, streams=False, pairs=True)

    assert (weights["cost"], weights["slow"], weights["bad"], weights["answers"]) == (4.0, 0.0, 1.0, 0.0)


def test_each_guard_is_of_one_kind_and_units_have_no_events() -> None:
    """A sticky unit's failures are a part of its calls."""
    terms = RolloutTerms(guards=(GuardTerms(name="bad", kind="event", field="x"),))
    names = list(weights_of(terms, streams=False, pairs=True))
    events, amounts = event_guards(terms, names), amount_guards(terms, names)

    assert sorted([*events, *amounts, "crash", "pairs"]) == sorted(names)
    assert "bad" in events
    sticky = RolloutTerms(sticky=Sticky.TENANT)
    assert event_guards(sticky, names) == ["degraded", "answers"]
    assert "errors" in amount_guards(sticky, names)
