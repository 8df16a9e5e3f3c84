"""Capacity of the sides of a rollout."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_core.model.rollouts.capacity import ArmCapacity, capacities, next_share, share_carried, surge_of
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutState, RolloutTerms

ROLLOUT = Rollout(
    id="rol_1", number=1, control={"f": "ver_old", "g": "ver_g"}, canary={"f": "ver_new"}, twins={"f": "ver_twin"},
    salt=b"s" * 32, state=RolloutState.RAMP, step=0, share=100, terms=RolloutTerms(steps=(100, 2_500, WHOLE)),
    since=0.0, started_at=0.0, by="key_1",
)  # fmt: skip


def test_canary_and_twin_are_sized_for_the_step_that_comes() -> None:
    found = capacities(ROLLOUT, "f")
    assert {version: (one.arm, one.part) for version, one in found.items()} == {
        "ver_old": (Arm.CONTROL, 1.0), "ver_new": (Arm.CANARY, 0.25), "ver_twin": (Arm.TWIN, 0.25),
    }  # fmt: skip


@pytest.mark.parametrize("state", [RolloutState.PLANNED, RolloutState.CHECKING, RolloutState.ROLLING_BACK])
def test_before_it_starts_and_while_it_rolls_back_only_the_old_version_keeps_anything(state: RolloutState) -> None:
    assert capacities(replace(ROLLOUT, state=state), "f").keys() == {"ver_old"}


@pytest.mark.parametrize("state", [RolloutState.PROMOTED, RolloutState.ROLLED_BACK, RolloutState.SUPERSEDED])
def test_nothing_is_kept_once_it_is_over_and_of_functions_that_take_no_part(state: RolloutState) -> None:
    assert capacities(replace(ROLLOUT, state=state), "f") == {}
    assert capacities(ROLLOUT, "g") == {}


@given(whole=st.integers(0, 200), needed=st.integers(0, 200), part=st.floats(0, 1))
def test_a_side_has_what_its_calls_need_and_no_more_than_the_surge_beyond(whole: int, needed: int, part: float) -> None:
    kept = ArmCapacity(Arm.CANARY, part, None).containers(whole, needed)
    assert needed <= kept <= needed + surge_of(whole)
    assert ArmCapacity(Arm.CONTROL, 1.0, None).containers(whole, needed) == max(whole, needed)


def test_a_function_that_nobody_calls_has_no_container_for_its_rollout() -> None:
    assert [each.containers(0, 0) for each in capacities(ROLLOUT, "f").values()] == [0, 0, 0]


def test_a_share_is_what_ready_containers_carry() -> None:
    assert share_carried(5_000, ready=1, whole=10) == 1_000
    assert share_carried(500, ready=1, whole=10) == 500
    assert share_carried(5_000, ready=0, whole=10) == 0
    assert share_carried(5_000, ready=0, whole=0) == 5_000


def test_the_last_step_is_followed_by_itself() -> None:
    assert next_share(replace(ROLLOUT, step=2)) == WHOLE
    assert next_share(replace(ROLLOUT, step=-1)) == 100
