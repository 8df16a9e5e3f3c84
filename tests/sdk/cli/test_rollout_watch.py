"""A rollout as people see it."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight.cli.rollout_watch import headline, rollout_lines
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
    assert "none yet" in "\n".join(rollout_lines(begun, NOW))
    assert headline(begun).startswith("starting, 5 %")


@pytest.mark.parametrize("held", ["no_capacity", "a word of a later release"])
def test_what_holds_it_is_said(held: str) -> None:
    assert f"held ({held})" in "\n".join(rollout_lines(view(held=held), NOW))
    assert f"held ({held})" in headline(view(held=held))


def test_when_it_goes_on_is_said_while_that_is_to_come() -> None:
    assert "  the next step: in 2m at the earliest" in list(rollout_lines(view(next_at=NOW + 120), NOW))
    assert "next step" not in "\n".join(rollout_lines(view(next_at=NOW - 1), NOW))
