"""A rollout as people see it."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight.cli.rollout_watch import headline, plan_line, rollout_lines
from pilotlight_core.model.api.rollouts.rollout_api import RolloutView
from tests.sdk.cli.rollout_answers import ROLLOUT
from tests.sdk.cli.seeing_answers import NOW


def view(**more: object) -> RolloutView:
    return msgspec.convert(ROLLOUT | more, RolloutView)


def test_one_that_is_over_says_why() -> None:
    shown = "\n".join(rollout_lines(view(state="rolled_back", reason="worse"), NOW))
    assert "because: worse" in shown
    assert "ready containers" not in shown


def test_one_that_has_just_begun_has_no_step() -> None:
    begun = view(state="starting", step=0, held="", calls={})
    shown = "\n".join(rollout_lines(begun, NOW))
    assert "compared: nothing yet" in shown
    assert "starting for 2m: the new version and its twin get containers" in shown
    assert headline(begun).startswith("starting, 5 %")


@pytest.mark.parametrize("held", ["no_capacity", "a word of a later release"])
def test_what_holds_it_is_said(held: str) -> None:
    assert f"held ({held})" in "\n".join(rollout_lines(view(held=held), NOW))
    assert f"held ({held})" in headline(view(held=held))


def test_when_it_goes_on_is_said_while_that_is_to_come() -> None:
    assert "  the next step: in 2m at the earliest" in list(rollout_lines(view(next_at=NOW + 120), NOW))
    assert "next step" not in "\n".join(rollout_lines(view(next_at=NOW - 1), NOW))


PAIRS = {
    "function": "greet", "guard": "pairs", "about": "GPU time of pairs", "evidence": 0.8, "canary": 57, "other": 57,
    "effect": 0.012, "low": -0.03, "high": 0.055, "proven": 0.1,
}  # fmt: skip
FAILURES = {
    "function": "greet", "guard": "errors", "about": "failures", "evidence": 0.5, "canary": 2, "canary_of": 120,
    "other": 1, "other_of": 1_118,
}  # fmt: skip
UNSEEN = {"function": "greet", "guard": "answers", "about": "answers that differ", "weight": 0.0}


def test_pairs_say_what_happens_and_how_far_they_are() -> None:
    shown = "\n".join(rollout_lines(view(state="pairs", step=0, seen=[PAIRS], terms={"pairs": 300}, calls={}), NOW))
    assert "as shadows (57 of 300); callers have the old one's answers" in shown
    assert "compared: 57 pairs" in shown
    assert "as shadows; callers" in "\n".join(rollout_lines(view(state="pairs", step=0, seen=[]), NOW))


def test_each_guard_says_what_it_has_seen() -> None:
    """Of one function by its name alone; without weight it is shown, and not counted."""
    shown = list(rollout_lines(view(seen=[PAIRS, FAILURES, UNSEEN]), NOW))
    assert any(line.endswith("compared: 57 pairs, 120 canary calls, 118 twin calls") for line in shown)
    assert (
        "    pairs            0.8  GPU time of pairs: +1.2% (-3.0% to +5.5%), by 57; proven not to be 10% worse"
        in shown
    )
    assert "    errors           0.5  failures: 2 of 120 new, 1 of 1,118 old" in shown
    assert "    answers            1  answers that differ: nothing yet; shown, and not counted" in shown
    several = "\n".join(rollout_lines(view(seen=[PAIRS, FAILURES | {"function": "other"}]), NOW))
    assert "other.errors" in several


def test_one_that_begins_says_what_it_is_to_do() -> None:
    terms = {"pairs": 300, "every_s": 300.0, "bake_s": 1_800.0}
    assert plan_line(view(terms=terms)) == (
        "300 pairs of shadows where they may be made, 1, 5, 100 % of the calls, 5m or more at each step, 30m of baking"
    )
    assert plan_line(view(terms=terms | {"pairs": 0})).startswith("1, 5, 100 % of the calls")
