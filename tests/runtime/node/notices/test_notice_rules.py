"""What holds of a provider's notices, and how the time until a deadline is spent."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.notice_rules import (
    OVER_S,
    for_calls_s,
    is_over,
    margin_s,
    standing_notice,
    step_bound_s,
)

REBALANCE = NodeNotice(kind=NoticeKind.REBALANCE)


def preempt(deadline: float) -> NodeNotice:
    return NodeNotice(kind=NoticeKind.PREEMPT, deadline=deadline)


def test_a_notice_comes_nearer_and_never_goes_away_by_itself() -> None:
    """A provider that has forgotten what it said takes the machine all the same."""
    for kept, told, holds in [
        (None, None, None),
        (None, preempt(100), preempt(100)),
        (preempt(100), None, preempt(100)),
        (preempt(100), preempt(90), preempt(90)),
        (preempt(100), preempt(110), preempt(100)),
        (preempt(100), REBALANCE, preempt(100)),
        (REBALANCE, preempt(100), preempt(100)),
        (REBALANCE, None, REBALANCE),
    ]:
        assert standing_notice(kept, told, revokes=False, at=50.0) == holds


def test_some_providers_withdraw_what_they_have_said() -> None:
    """Then nothing holds any more."""
    assert standing_notice(preempt(100), None, revokes=True, at=50.0) is None
    assert standing_notice(REBALANCE, None, revokes=True, at=50.0) is None


def test_a_notice_is_over_some_time_after_its_deadline() -> None:
    """The machine was not taken away, or is back with a file that says what was."""
    late = 100 + OVER_S + 1
    assert standing_notice(preempt(100), preempt(100), revokes=False, at=late - 2) == preempt(100)
    assert standing_notice(preempt(100), preempt(100), revokes=False, at=late) is None
    assert standing_notice(preempt(100), preempt(late + 30), revokes=False, at=late) == preempt(late + 30)
    assert not is_over(REBALANCE, late)


@pytest.mark.parametrize(("left", "margin"), [(120.0, 10.0), (30.0, 6.0), (5.0, 1.0), (0.5, 1.0)])
def test_a_part_of_the_time_is_the_agents_own(left: float, margin: float) -> None:
    """It has usage to send and a last word to say; calls have the rest."""
    assert margin_s(left) == margin
    assert for_calls_s(preempt(1_000.0), 1_000.0 - left) == max(0.0, left - margin)


def test_a_step_of_the_end_has_its_part_of_what_is_left() -> None:
    """As long as usual without a notice, and never nothing."""
    assert step_bound_s(None, 1.5, 5, 0.0) == 1.5
    assert step_bound_s(REBALANCE, 1.5, 5, 0.0) == 1.5
    assert step_bound_s(preempt(100), 1.5, 5, 0.0) == 1.5
    assert step_bound_s(preempt(100), 1.5, 5, 98.0) == 0.4
    assert step_bound_s(preempt(100), 1.5, 5, 101.0) == 0.1
