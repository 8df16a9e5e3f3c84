"""Two shadows of one input."""

from __future__ import annotations

from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.shadow_sides import MOST_WAITING, ShadowSide, paired, side_of
from tests.builders.compared import compared_call


def test_a_pair_is_there_when_both_have_come_in_any_order() -> None:
    """The canary's is first in the answer."""
    for arms in ((Arm.CANARY, Arm.TWIN), (Arm.TWIN, Arm.CANARY)):
        waiting: dict[str, ShadowSide] = {}
        assert paired(waiting, compared_call(arms[0], pair="p")) is None
        both = paired(waiting, compared_call(arms[1], pair="p"))

        assert both is not None
        assert [side.canary for side in both] == [True, False]
        assert waiting == {}


def test_a_side_that_comes_twice_is_no_pair() -> None:
    """It waits for the other one."""
    waiting: dict[str, ShadowSide] = {}
    assert paired(waiting, compared_call(Arm.TWIN, pair="p")) is None
    assert paired(waiting, compared_call(Arm.TWIN, pair="p")) is None
    assert len(waiting) == 1


def test_half_pairs_are_bounded() -> None:
    """The oldest is forgotten."""
    waiting: dict[str, ShadowSide] = {}
    for number in range(MOST_WAITING + 9):
        paired(waiting, compared_call(pair=str(number)))

    assert len(waiting) == MOST_WAITING
    assert "0" not in waiting


def test_what_a_stream_costs_is_counted_by_its_tokens() -> None:
    """A version that says more is not dearer for it."""
    assert side_of(compared_call(gpu_ns=600, tokens=3, first_ms=1.0)).cost == 200.0
    assert side_of(compared_call(gpu_ns=600, tokens=3)).cost == 600.0
    assert side_of(compared_call(gpu_ns=600, code_ns=300, tokens=3, first_ms=1.0)).code == 100.0
