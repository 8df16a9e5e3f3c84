"""What people ask of rollouts: terms that make sense, versions that differ, and words that win."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pilotlight_core.model.api.rollouts.rollout_api import OwnGuard, RolloutRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.rollouts.rollout_record import RolloutState
from pilotlight_core.model.spec import AppRecord, DeployRecord
from pilotlight_gateway.rollouts.rollout_desk import canary_of, terms_of, with_word
from tests.gateway.rollouts.kept_rollout import NEW, OLD, record_of, rollout


def app(**more: Any) -> AppRecord:
    fields: dict[str, Any] = {
        "tenant": "acme", "app": "shop", "revision": 2, "functions": {"price": OLD},
        "versions": {"price": (OLD, NEW)},
        "history": (
            DeployRecord(revision=1, at=0.0, by="k", functions={"price": OLD}),
            DeployRecord(revision=2, at=0.0, by="k", functions={"price": NEW}, traffic=False),
        ),
    }  # fmt: skip
    return AppRecord(**fields | more)


def test_percent_are_basis_points() -> None:
    terms = terms_of(RolloutRequest(steps=(0.5, 100.0), hold_back=2.5))
    assert (terms.steps, terms.hold_back) == ((50, 10_000), 250)


@pytest.mark.parametrize("steps", [(5.0, 1.0), (5.0, 5.0), (0.001, 5.0)])
def test_steps_rise(steps: tuple[float, ...]) -> None:
    with pytest.raises(BadInput, match="rise"):
        terms_of(RolloutRequest(steps=steps))


def test_guards_are_known_or_new() -> None:
    with pytest.raises(BadInput, match="no guard"):
        terms_of(RolloutRequest(weights={"beauty": 1.0}))
    with pytest.raises(BadInput, match="platform's own"):
        terms_of(RolloutRequest(guards=(OwnGuard(name="cost", kind="event", field="x"),)))


@pytest.mark.parametrize("named", ["", "v2", "2"])
def test_the_new_versions_are_named_in_three_ways(named: str) -> None:
    """By the newest deploy without traffic, a number of a version, or that of a deploy."""
    assert canary_of(app(), named) == {"price": NEW}


@pytest.mark.parametrize(("named", "error"), [("v9", NotFound), ("9", NotFound), ("x", NotFound), ("v1", BadInput)])
def test_what_is_not_there_or_serves_already_is_refused(named: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        canary_of(app(), named)


def test_a_version_of_several_functions_is_not_one() -> None:
    several = app(functions={"price": OLD, "other": "x"})
    with pytest.raises(BadInput, match="several functions"):
        canary_of(several, "v2")
    with pytest.raises(NotFound):
        canary_of(app(history=()), "")


def test_words_win_over_the_judge_also_while_it_is_paused() -> None:
    """Each again changes nothing; resume ends pauses, freezes and what held it."""
    running = record_of(rollout(state=RolloutState.RAMP, share=500, held="calls", held_since=3.0))
    paused = with_word(running, "pause", "key1: Monday", 5.0)
    assert paused.rollout is not None
    assert paused.rollout.paused_by == "key1: Monday"
    assert with_word(paused, "pause", "key2", 6.0) is paused
    frozen = with_word(paused, "freeze", "key1", 6.0)
    resumed = with_word(frozen, "resume", "key1", 7.0).rollout
    assert resumed is not None
    assert (resumed.paused_by, resumed.frozen, resumed.held) == ("", False, "")
    aborted = with_word(frozen, "abort", "key1", 8.0)
    assert aborted.rollout is not None
    assert (aborted.rollout.state, aborted.rollout.share, aborted.withdrawn) == (RolloutState.ROLLING_BACK, 0, {})
    assert with_word(aborted, "abort", "key1", 9.0) is aborted


@pytest.mark.parametrize("word", ["promote", "pause", "resume", "freeze"])
def test_what_goes_back_does_not_stop_or_turn(word: str) -> None:
    back = record_of(rollout(state=RolloutState.ROLLING_BACK))
    with pytest.raises(Conflict, match="rolling back"):
        with_word(back, word, "key1", 5.0)
    over = record_of(rollout(state=RolloutState.PROMOTED))
    with pytest.raises(Conflict, match="under way"):
        with_word(over, word, "key1", 5.0)


def test_a_promotion_says_by_whom() -> None:
    promoted = with_word(record_of(rollout()), "promote", "key1", 5.0).rollout
    assert promoted is not None
    assert (promoted.state, promoted.reason) == (RolloutState.PROMOTED, "promoted by key1")
    assert replace(promoted, state=RolloutState.PROMOTED) == promoted
